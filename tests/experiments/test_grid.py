import numpy as np
import pytest

from manyheads.experiments.grid import Grid, assemble
from manyheads.reporting.statistics import student

VALUES = np.arange(1.0, 13.0).reshape(2, 2, 3)


@pytest.fixture
def small():
    return Grid({"n_tokens": (4, 8), "width": (16, 32), "seed": (0, 1, 2)}, {"nmse": VALUES, "half": VALUES / 2})


def test_an_axis_is_fixed_by_its_name_and_value(small):
    assert small.at(width=32, n_tokens=8)["nmse"].tolist() == [10, 11, 12]
    assert list(small.at(width=16).axes) == ["n_tokens", "seed"]
    assert small.at(seed=1)["half"].tolist() == [[1, 2.5], [4, 5.5]]
    assert small.n_tokens == (4, 8)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"width": 17}, "unknown width 17; did you mean '16'.* known: 16, 32"),
        ({"widht": 16}, "unknown axis 'widht'; did you mean 'width'"),
    ],
)
def test_what_is_not_on_an_axis_is_refused(small, place, message):
    with pytest.raises(ValueError, match=message):
        small.at(**place)


def test_an_unknown_quantity_and_an_unknown_attribute_list_the_known_ones(small):
    with pytest.raises(ValueError, match="unknown quantity 'nmes'; did you mean 'nmse'"):
        small["nmes"]
    with pytest.raises(AttributeError, match="unknown axis 'widths'; did you mean 'width'"):
        small.widths  # noqa: B018


def test_intervals_are_over_the_seeds_whatever_is_left(small):
    assert small.at(n_tokens=4, width=16).student("nmse") == student([1, 2, 3])
    assert small.student("nmse")[1][0] == student([7, 8, 9])
    geometric = small.at(n_tokens=4, width=16).student("nmse", log=True)
    assert geometric.mean == pytest.approx(6 ** (1 / 3))
    assert geometric.low < geometric.mean < geometric.high
    with pytest.raises(ValueError, match="needs the axis 'seed'"):
        small.at(seed=0).student("nmse")


def test_arrays_that_do_not_fit_the_axes_are_refused():
    with pytest.raises(ValueError, match=r"nmse has shape \[3\], the axes have 2 n_tokens"):
        Grid({"n_tokens": (4, 8)}, {"nmse": [1, 2, 3]})


def test_parts_come_back_at_their_points(small):
    parts = [{"nmse": VALUES[i, j], "half": VALUES[i, j] / 2} for i in range(2) for j in range(2)]
    again = assemble({"n_tokens": (4, 8), "width": (16, 32)}, parts, 3)
    assert again.to_json() == small.to_json()
    assert Grid(**again.to_json()).at(n_tokens=8)["nmse"].shape == (2, 3)
