import html

import pytest

from manyheads.reporting import figures, trial


def run(n_heads, n_tokens):
    figure, ax = figures.canvas(2, 1)
    ax.set_title(f"H{n_heads}T{n_tokens}")
    return figure, f"{n_heads} heads, {n_tokens} tokens"


def test_nothing_runs_before_the_button_and_each_press_replaces_the_figure():
    made = trial(run, "Train", n_heads=[1, 2], n_tokens=[4, 8, 16])
    assert made.output.value == ""
    for i, j in [(0, 0), (1, 2), (0, 1)]:
        made.sliders["n_heads"].index, made.sliders["n_tokens"].index = i, j
        made.button.click()
        assert f"H{[1, 2][i]}T{[4, 8, 16][j]}" in made.output.value
        assert made.output.value.count("<svg") == 1


@pytest.mark.parametrize("error", [RuntimeError("too <large>"), KeyboardInterrupt()])
def test_a_failed_run_shows_why_and_leaves_a_button_that_can_be_pressed_again(error):
    def fails(n):
        raise error

    made = trial(fails, "Train", n=[1])
    made.button.click()
    assert 'role="alert"' in made.output.value
    assert f"<strong>{type(error).__name__}" in made.output.value
    assert html.escape(str(error)) in made.output.value
    assert "No figure for n = 1." in made.output.value
    assert not made.button.disabled
    assert made.button.description == "Train"


def test_stored_output_says_what_a_kernel_would_offer(monkeypatch):
    published = []
    monkeypatch.setattr("IPython.display.publish_display_data", published.append)
    monkeypatch.setenv("MANYHEADS_EXPLORE", "static")
    trial(run, "Train", n_heads=[1], n_tokens=[4])._ipython_display_()
    assert "sliders for n heads, n tokens and a button \u201cTrain\u201d" in published[0]["text/plain"]


def test_a_person_gets_the_widget(monkeypatch):
    shown = []
    monkeypatch.delenv("MANYHEADS_EXPLORE", raising=False)
    monkeypatch.setattr("IPython.display.display", shown.append)
    made = trial(run, n_heads=[1], n_tokens=[4])
    made._ipython_display_()
    assert shown == [made.widget]


def test_no_axis_is_refused():
    with pytest.raises(ValueError, match="at least one axis"):
        trial(run)
