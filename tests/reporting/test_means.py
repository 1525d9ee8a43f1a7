import numpy as np
import pytest

from manyheads.reporting import figures
from manyheads.reporting.statistics import Mean, student

MEANS = [Mean(0.5, 0.4, 0.7, 5), Mean(0.25, 0.2, 0.3, 5)]


def edges(collection):
    """Lowest and highest y of a band at each x."""
    points = collection.get_paths()[0].vertices
    return {x: (points[points[:, 0] == x, 1].min(), points[points[:, 0] == x, 1].max()) for x in set(points[:, 0])}


def test_a_band_runs_from_end_to_end_of_the_intervals():
    _, ax = figures.canvas()
    words = figures.band(ax, [4, 8], MEANS, label="net", index=1, at="n = {}")
    assert words == "0.5 at n = 4, 0.25 at n = 8"
    (line,) = ax.lines
    assert line.get_ydata() == pytest.approx([0.5, 0.25])
    assert (line.get_label(), line.get_color()) == ("net", figures.style(1)["color"])
    found = edges(ax.collections[0])
    assert found[4] == pytest.approx((0.4, 0.7))
    assert found[8] == pytest.approx((0.2, 0.3))


def test_bars_run_from_end_to_end_of_the_intervals():
    _, ax = figures.canvas()
    words = figures.error_bars(ax, [12345, 67], MEANS, label="net", at="{:,} parameters", markersize=9)
    assert words == "0.5 at 12,345 parameters, 0.25 at 67 parameters"
    (bars,) = ax.containers
    assert bars.get_label() == "net"
    assert bars.lines[0].get_markersize() == 9
    ends = [segment[:, 1] for segment in bars.lines[2][0].get_segments()]
    assert np.array(ends) == pytest.approx(np.array([[0.4, 0.7], [0.2, 0.3]]))


def test_a_faint_series_stands_back():
    _, ax = figures.canvas()
    figures.band(ax, [4, 8], MEANS)
    figures.band(ax, [4, 8], MEANS, faint=True)
    strong, faint = ax.lines
    assert faint.get_alpha() < 0.5
    assert faint.get_linewidth() < strong.get_linewidth()
    assert ax.collections[1].get_alpha() < ax.collections[0].get_alpha()


def test_geometric_means_are_told_as_such():
    _, ax = figures.canvas()
    assert figures.error_bars(ax, [1], [student([1e-6, 1e-4, 1e-2], log=True)]) == "0.0001 at 1"


@pytest.mark.parametrize("draw", [figures.band, figures.error_bars])
def test_each_x_has_a_mean_with_an_interval(draw):
    _, ax = figures.canvas()
    with pytest.raises(ValueError, match="x has 1 numbers and means has 2"):
        draw(ax, [4], MEANS)
    with pytest.raises(ValueError, match=r"means holds 0\.5"):
        draw(ax, [4], [0.5])
