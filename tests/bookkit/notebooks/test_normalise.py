import hashlib
import re
from collections import Counter
from copy import deepcopy

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_output

from bookkit.errors import NotebookError
from bookkit.notebooks import parameters
from bookkit.notebooks.execute import execute
from bookkit.notebooks.normalise import MAX_BYTES, broken, normalise, problems, text
from bookkit.reading import STATE, VIEW
from tests.bookkit.small_book import code, markdown, notebook


def executed(*outputs, source="work()"):
    """A notebook as it is after a run, whose one code cell has these outputs."""
    cell = code(source)
    cell.execution_count, cell.outputs = 1, list(outputs)
    return notebook(markdown("# T"), cell)


def stream(content, name="stdout"):
    return new_output("stream", name=name, text=content)


def shown(**data):
    return new_output("display_data", {key.replace("_", "/"): value for key, value in data.items()})


def explorer(view):
    return new_output("display_data", {VIEW: {"model_id": view, "version_major": 2}, "text/html": "<p>still</p>"})


def with_widgets(ids):
    """A page with two sliders and the link between them, under the given ids."""
    slider, other, layout, link = ids
    states = {
        link: {"model_name": "LinkModel", "state": {"source": [f"IPY_MODEL_{slider}", "value"]}},
        slider: {"model_name": "SliderModel", "state": {"layout": f"IPY_MODEL_{layout}"}},
        layout: {"model_name": "LayoutModel", "state": {}},
        other: {"model_name": "SliderModel", "state": {"layout": f"IPY_MODEL_{layout}"}},
    }
    nb = executed(explorer(slider), explorer(other))
    nb.metadata.widgets = {STATE: {"state": states, "version_major": 2, "version_minor": 0}}
    return nb


def test_a_clean_notebook_stays_as_it_is():
    once = normalise(executed(stream("1\n")), "t")
    assert problems(once) == []
    assert text(normalise(once, "t")) == text(once)


def test_the_input_is_left_alone():
    nb = executed(stream("a"), stream("b"))
    before = deepcopy(nb)
    normalise(nb, "t")
    assert nb == before


def test_traces_of_a_run_go():
    nb = executed(stream("1\n"))
    nb.metadata.papermill = {"start_time": "now"}
    nb.metadata.kernelspec = {"name": "mine", "display_name": "My kernel"}
    nb.metadata.language_info = {"name": "python", "version": "3.99.1"}
    nb.cells[1].metadata.update({"papermill": {"duration": 1}, "execution": {"iopub.execute_input": "now"}, "tags": []})
    assert text(normalise(nb, "t")) == text(normalise(executed(stream("1\n")), "t"))


def test_the_injected_cell_goes_and_counts_close_up():
    nb = executed(new_output("execute_result", {"text/plain": "1"}, execution_count=2))
    injected = code("seed = 1", "injected-parameters")
    injected.execution_count = 1
    nb.cells.insert(1, injected)
    nb.cells[2].execution_count = 2
    result = normalise(nb, "t")
    assert [cell.source for cell in result.cells] == ["# T", "work()"]
    assert result.cells[1].execution_count == result.cells[1].outputs[0].execution_count == 1
    assert "cell 2 was injected by papermill" in problems(nb)


def test_streams_that_the_clock_cut_are_joined():
    nb = executed(stream("a"), stream("b"), shown(text_plain="x"), stream("c"))
    texts = [output.get("text") for output in normalise(nb, "t").cells[1].outputs]
    assert texts == ["ab", None, "c"]


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([new_output("error", ename="ValueError", evalue="no")], "cell 2 failed: ValueError: no"),
        ([stream("50%", "stderr")], "cell 2 writes to stderr.*50%"),
        ([shown(text_plain="<object at 0x7f12ab34cd>")], "shows a memory address"),
        ([shown(text_html="x" * (MAX_BYTES + 1))], r"1\.50 MB; the limit is 1\.5 MB"),
    ],
)
def test_what_must_not_be_committed(outputs, message):
    with pytest.raises(NotebookError, match=message):
        normalise(executed(*outputs), "t")


def test_an_unexecuted_cell_is_refused_for_the_site_too():
    nb = notebook(markdown("# T"), code("1 + 1"))
    for keep in (True, False):
        with pytest.raises(ValueError, match="cell 2 was not executed"):
            normalise(nb, "t", keep_widgets=keep)


def test_counts_out_of_order():
    first, second = code("a"), code("b")
    first.execution_count, second.execution_count = 2, 1
    assert broken(notebook(first, second)) == [
        "cell 1 ran as number 2 instead of 1: run all, in order",
        "cell 2 ran as number 1 instead of 2: run all, in order",
    ]


def test_an_empty_cell_needs_no_count():
    assert broken(notebook(code(""), markdown("a"))) == []


def test_an_old_format_without_ids_is_refused():
    nb = normalise(executed(), "t")
    nb.nbformat_minor = 4
    assert any("old format" in problem for problem in problems(nb))


def test_committed_notebooks_keep_the_figure_and_not_the_widget():
    nb = with_widgets(["1" * 32, "2" * 32, "3" * 32, "4" * 32])
    assert any("stores a widget" in problem for problem in problems(nb))
    assert any("state of widgets" in problem for problem in problems(nb))
    result = normalise(nb, "t")
    assert "widgets" not in result.metadata
    assert [dict(output.data) for output in result.cells[1].outputs] == [{"text/html": "<p>still</p>"}] * 2


def test_a_widget_without_a_figure_leaves_nothing():
    nb = executed(new_output("display_data", {VIEW: {"model_id": "1" * 32}, "text/plain": "IntSlider(value=0)"}))
    assert normalise(nb, "t").cells[1].outputs == []


def test_widget_ids_are_those_of_the_page():
    one = with_widgets(["a" * 32, "b" * 32, "c" * 32, "d" * 32])
    other = with_widgets(["9" * 32, "1" * 32, "5" * 32, "0" * 32])
    assert text(normalise(one, "t", keep_widgets=True)) == text(normalise(other, "t", keep_widgets=True))
    assert text(normalise(one, "t", keep_widgets=True)) != text(normalise(one, "u", keep_widgets=True))


def test_widgets_still_refer_to_one_another():
    nb = normalise(with_widgets(["a" * 32, "b" * 32, "c" * 32, "d" * 32]), "t", keep_widgets=True)
    states = nb.metadata.widgets[STATE].state
    views = [output.data[VIEW].model_id for output in nb.cells[1].outputs]
    assert set(views) < set(states)
    assert set(re.findall(r"IPY_MODEL_(\w+)", nbformat.writes(nb))) <= set(states)
    assert len(states) == 4


def page_of_widgets(order):
    """A slider that moves another, one that moves a hidden one, and hidden groups that only their links tell apart.

    The models are stored in the given order, under ids that are in no order.
    """
    ids = {name: hashlib.md5(name.encode()).hexdigest() for name in MODELS}

    def model(kind, **state):
        return {"model_name": f"{kind}Model", "state": {k: f"IPY_MODEL_{ids[v]}" for k, v in state.items()}}

    def link(kind, one, other):
        state = {"source": [f"IPY_MODEL_{ids[one]}", "index"], "target": [f"IPY_MODEL_{ids[other]}", "index"]}
        return {"model_name": kind, "state": state}

    states = {
        **{name: model("Layout") for name in MODELS if name.startswith("layout")},
        **{name: model("Slider", layout=f"layout {name}") for name in ("shown", "moved", "hidden", "twin")},
        "box": model("Box", children="moved"),
        "link": link("LinkModel", "shown", "moved"),
        "one way": link("DirectionalLinkModel", "moved", "shown"),
        "to a hidden one": link("LinkModel", "shown", "hidden"),
        "between hidden ones": link("LinkModel", "hidden", "twin"),
    }
    nb = executed(explorer(ids["shown"]), explorer(ids["box"]))
    stored = {ids[name]: states[name] for name in order}
    nb.metadata.widgets = {STATE: {"state": stored, "version_major": 2, "version_minor": 0}}
    return nb


SLIDERS = ["shown", "moved", "hidden", "twin"]
MODELS = [*SLIDERS, *(f"layout {name}" for name in SLIDERS), "box", "link", "one way", "to a hidden one"]
MODELS.append("between hidden ones")


@given(st.permutations(MODELS))
def test_the_order_in_which_widgets_were_stored_changes_nothing(order):
    """A fresh run stores them as they were made, one from the cache by their ids."""
    given_order, other = (
        normalise(page_of_widgets(names), "t", keep_widgets=True) for names in (order, sorted(MODELS))
    )
    assert text(given_order) == text(other)


def test_only_what_a_view_needs_is_kept_with_the_links_that_move_it():
    nb = normalise(page_of_widgets(MODELS), "t", keep_widgets=True)
    states = nb.metadata.widgets[STATE].state
    kinds = Counter(state.model_name for state in states.values())
    assert kinds == {"SliderModel": 2, "LayoutModel": 2, "BoxModel": 1, "LinkModel": 1, "DirectionalLinkModel": 1}
    assert set(re.findall(r"IPY_MODEL_(\w+)", nbformat.writes(nb))) <= set(states)


def test_a_page_that_shows_no_widget_stores_none():
    nb = executed(stream("1\n"))
    nb.metadata.widgets = {STATE: {"state": {"1" * 32: {"model_name": "SliderModel", "state": {}}}}}
    assert normalise(nb, "t", keep_widgets=True).metadata.widgets[STATE].state == {}


@pytest.mark.slow
def test_two_executions_give_the_same_bytes(built, runs):
    chapter = runs[0].chapter
    again = execute(built, chapter, parameters.resolve(chapter.read(), "one", {}))
    assert nbformat.writes(again.nb) != nbformat.writes(runs[0].nb)  # ids and times of the two runs differ
    for keep in (True, False):
        one, other = (normalise(run.nb, "01_first", keep_widgets=keep) for run in (runs[0], again))
        assert text(one) == text(other)
    assert again.nb.metadata.widgets
