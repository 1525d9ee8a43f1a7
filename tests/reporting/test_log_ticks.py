import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import ticker
from matplotlib.backends.backend_agg import FigureCanvasAgg

from manyheads.reporting import figures
from manyheads.reporting.figures.log_ticks import choose, labels


def shown(ax, which):
    """Tick labels that a reader sees, with their boxes, after a drawing."""
    figure = ax.get_figure()
    FigureCanvasAgg(figure).draw()
    axis = getattr(ax, f"{which}axis")
    low, high = sorted(axis.get_view_interval())
    seen = []
    for ticks in (axis.get_major_ticks(), axis.get_minor_ticks()):
        for tick in ticks:
            if tick.label1.get_text() and low <= tick.get_loc() <= high:
                seen.append((tick.label1.get_text(), tick.label1.get_window_extent()))
    return seen


def collide(seen):
    boxes = [box for _, box in seen]
    return any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def narrow(which, low, high, columns=1):
    figure, axes = figures.canvas(5.8, 3.2, columns=columns, squeeze=False)
    for ax in axes[0]:
        getattr(ax, f"set_{which}scale")("log")
        getattr(ax, f"set_{which}lim")(low, high)
    return figure, axes[0][0]


RANGES = [(1e-12, 2), (1e-5, 1), (4e3, 7e4), (2.5e4, 4.6e4), (1e3, 1e5), (0.03, 2.7e3), (0.2, 0.9), (3, 4), (1e7, 5e7)]


@pytest.mark.parametrize(("low", "high"), [*RANGES, (5e4, 6e3)])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("which", ["x", "y"])
def test_labels_of_a_logarithmic_axis_do_not_collide(which, low, high, columns):
    figure, ax = narrow(which, low, high, columns)
    figures.svg(figure, "ticks")
    seen = shown(ax, which)
    assert len(seen) >= 2
    assert not collide(seen)
    assert not any("$" in text for text, _ in seen)


def test_matplotlibs_own_do_collide():
    _, ax = narrow("x", 4e3, 7e4)
    assert collide(shown(ax, "x"))


@given(st.floats(-12, 12), st.floats(0.01, 20), st.floats(4, 60), st.booleans(), st.sampled_from([2.0, 10.0]))
@settings(deadline=None)
def test_ticks_lie_in_view_and_differ_in_their_labels(start, decades, length, across, base):
    low, high = 10**start, 10 ** (start + decades)
    ticks = choose(low, high, base, length, across)
    assert all(low * (1 - 1e-6) <= tick <= high * (1 + 1e-6) for tick in ticks)
    assert sorted(set(ticks)) == list(ticks)
    if decades >= 0.1:
        assert len(set(labels(ticks, base))) == len(ticks)
    if decades >= 1 and length >= 20:
        assert ticks


@pytest.mark.parametrize(
    ("low", "high", "base", "texts"),
    [
        (1e-12, 2, 10, ["10⁻¹²", "10⁻¹⁰", "10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"]),
        (4e3, 4e4, 10, ["5,000", "10,000", "20,000"]),
        (0.9, 90, 2, ["1", "2", "4", "8", "16", "32", "64"]),
        (1, 2**40, 2, ["2⁰", "2⁵", "2¹⁰", "2¹⁵", "2²⁰", "2²⁵", "2³⁰", "2³⁵", "2⁴⁰"]),
        (1e7, 5e7, 10, ["10⁷", "2×10⁷", "5×10⁷"]),
    ],
)
def test_labels_read_as_in_print(low, high, base, texts):
    assert labels(choose(low, high, base, 35, True), base) == texts


def test_no_figure_needs_mathtext_for_its_ticks(monkeypatch):
    def never(*_):
        raise AssertionError("parsed")

    monkeypatch.setattr("matplotlib.mathtext.MathTextParser.parse", never)
    figure, ax = narrow("y", 1e-12, 2)
    ax.set_xscale("log", base=2)
    assert "10⁻¹²" in figures.svg(figure, "ticks")
    figure, _ = narrow("y", 1e-12, 2)
    with pytest.raises(AssertionError, match="parsed"):
        shown(figure.axes[0], "y")


def test_ticks_and_labels_that_a_chapter_chose_stay():
    figure, ax = narrow("x", 0.5, 20)
    ax.set_xticks([1, 10], ["one", "ten"])
    ax.set_yscale("log")
    ax.set_ylim(1, 100)
    ax.set_yticks([3, 30])
    figures.svg(figure, "ticks")
    assert [text for text, _ in shown(ax, "x")] == ["one", "ten"]
    assert [text for text, _ in shown(ax, "y")] == ["3", "30"]


def test_an_axis_of_ones_own():
    _, ax = figures.canvas()
    ax.set(xlim=(0.5, 100), ylim=(1, 1000))
    figures.log_axis(ax, "both", base=2, ticks=[1, 8, 64], format="H = {:g}".format)
    for which in "xy":
        assert getattr(ax, f"get_{which}scale")() == "log"
        assert [text for text, _ in shown(ax, which)] == ["H = 1", "H = 8", "H = 64"]
    assert ax.xaxis.get_transform().base == 2


def test_one_axis_leaves_the_other_alone():
    _, ax = figures.canvas()
    figures.log_axis(ax, "y")
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    assert isinstance(ax.yaxis.get_minor_locator(), ticker.NullLocator)


def test_an_axis_without_data_can_be_drawn():
    figure, ax = figures.canvas()
    figures.log_axis(ax, "both")
    assert "<svg" in figures.svg(figure, "nothing yet")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"which": "z"}, "unknown axis 'z'"),
        ({"base": 1}, "base=1 must be above 1"),
        ({"ticks": [0, 1]}, "must be positive"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    _, ax = figures.canvas()
    with pytest.raises(ValueError, match=message):
        figures.log_axis(ax, **arguments)
