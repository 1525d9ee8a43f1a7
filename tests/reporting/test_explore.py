import ipywidgets as widgets
import pytest

from manyheads.reporting import Axis, explore, figures
from manyheads.reporting.explore import MAX_STATES


def draw(n_heads, n_tokens):
    figure, ax = figures.canvas(2, 1)
    ax.set_title(f"H{n_heads}T{n_tokens}")
    return figure, f"{n_heads} heads"


AXES = {"n_heads": [1, 2, 4], "n_tokens": Axis([8, 16], "Tokens T", start=16)}


def shown(widget):
    """The picture a reader sees: follow the selected child of every stack."""
    while not isinstance(widget, widgets.HTML):
        widget = widget.children[widget.selected_index] if isinstance(widget, widgets.Stack) else widget.children[-1]
    return widget.value


def test_static_states_are_all_drawn_and_linked_over_the_whole_range(monkeypatch):
    linked = []
    monkeypatch.setattr(widgets, "jslink", lambda source, target: linked.append((source, target)))
    explorer = explore(draw, static=True, **AXES)
    assert "H1T16" in shown(explorer.widget)
    for i, n_heads in enumerate([1, 2, 4]):
        for j, n_tokens in enumerate([8, 16]):
            explorer.sliders["n_heads"].index, explorer.sliders["n_tokens"].index = i, j
            for (source, s), (target, t) in linked:  # what the browser does
                setattr(target, t, getattr(source, s))
            assert f"H{n_heads}T{n_tokens}" in shown(explorer.widget)
            assert f"{n_heads} heads (n heads = {n_heads}, Tokens T = {n_tokens})" in shown(explorer.widget)


def test_live_redraws_one_output():
    explorer = explore(draw, static=False, **AXES)
    assert not any(isinstance(child, widgets.Stack) for child in explorer.widget.children)
    before = len(explorer.widget.children)
    for i, n_heads in enumerate([1, 2, 4]):
        explorer.sliders["n_heads"].index = i
        assert f"H{n_heads}T16" in explorer.widget.children[-1].value
    assert len(explorer.widget.children) == before


def fails(n_heads, n_tokens):
    if n_heads == 2:
        raise ValueError(f"{n_tokens} tokens <b>too many</b>")
    return draw(n_heads, n_tokens)


def test_live_an_error_takes_the_place_of_the_figure_until_a_state_can_be_drawn():
    explorer = explore(fails, static=False, **AXES)
    figure = explorer.widget.children[-1]
    explorer.sliders["n_heads"].index = 1
    assert "H1T16" not in figure.value
    assert "<svg" not in figure.value
    assert 'role="alert"' in figure.value
    assert "<strong>ValueError:</strong> 16 tokens &lt;b&gt;too many&lt;/b&gt;" in figure.value
    assert "No figure for n heads = 2, Tokens T = 16." in figure.value
    assert "in fails" in figure.value  # the traceback
    explorer.sliders["n_heads"].index = 2
    assert "H4T16" in figure.value
    assert "alert" not in figure.value


def test_live_an_interrupt_does_not_leave_the_figure_of_another_state():
    def interrupted(n):
        if n == 2:
            raise KeyboardInterrupt
        return draw(n, n)

    explorer = explore(interrupted, static=False, n=[1, 2])
    explorer.sliders["n"].index = 1
    assert "<strong>KeyboardInterrupt</strong>" in explorer.widget.children[-1].value


def test_static_an_error_raises_and_names_the_state():
    message = "no figure for n heads = 2, Tokens T = 8: ValueError: 8 tokens <b>too many</b>"
    with pytest.raises(RuntimeError, match=message) as raised:
        explore(fails, static=True, **AXES)
    assert isinstance(raised.value.__cause__, ValueError)


@pytest.mark.parametrize("static", [True, False])
def test_a_first_state_that_cannot_be_drawn_raises_at_once(static):
    with pytest.raises(RuntimeError, match="no figure for n = 1: ValueError: figure=None is not a figure"):
        explore(lambda n: None, static=static, n=[1])


def test_live_and_static_show_the_same_picture():
    assert explore(draw, static=False, **AXES).picture == shown(explore(draw, static=True, **AXES).widget)


def test_a_page_is_static_and_where_nobody_moves_it_or_a_person_does_one_state_is_drawn(monkeypatch):
    monkeypatch.setenv("MANYHEADS_EXPLORE", "static")
    assert explore(draw, **AXES).static
    monkeypatch.setenv("MANYHEADS_EXPLORE", "still")
    assert not explore(draw, **AXES).static
    monkeypatch.delenv("MANYHEADS_EXPLORE")
    assert not explore(draw, **AXES).static


def test_ipywidgets_without_stack_is_live(monkeypatch):
    monkeypatch.setenv("MANYHEADS_EXPLORE", "static")
    monkeypatch.delattr(widgets, "Stack")
    explorer = explore(draw, **AXES)
    explorer.sliders["n_heads"].index = 2
    assert "H4T16" in explorer.widget.children[-1].value
    with pytest.raises(RuntimeError, match="no Stack"):
        explore(draw, static=True, **AXES)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({}, "at least one axis"),
        ({"n": []}, "axis n has no values"),
        ({"n": [1, 1]}, "repeats a value"),
        ({"n": Axis([1, 2], start=3)}, "cannot start at 3"),
        ({"n": Axis([1.0, 1.01], format="{:.1f}".format)}, r"axis n must give each value a text .* \['1.0', '1.0'\]"),
        ({"n": Axis([1, 2], format={1: "one"}.get)}, r"axis n must give each value a text .* \['one', None\]"),
        ({"n": range(MAX_STATES + 1)}, "at most 60"),
        ({"n": range(8), "m": range(8)}, "8 n x 8 m = 64 states"),
    ],
)
def test_bad_axes_are_refused_before_anything_is_drawn(axes, message):
    def never(**_):
        raise AssertionError("drawn")

    with pytest.raises(ValueError, match=message):
        explore(never, **axes)


def test_the_output_bundle_holds_a_still_figure_beside_the_widget(monkeypatch):
    published = []
    monkeypatch.setattr("IPython.display.publish_display_data", published.append)
    explorer = explore(draw, **AXES)
    explorer._ipython_display_()
    (bundle,) = published
    assert bundle["text/html"] == explorer.picture
    assert bundle["text/plain"] == "Explorer: n heads in {1, 2, 4}, Tokens T in {8, 16}"
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.widget.model_id
