import os

import pytest
from nbformat.v4 import new_output

from bookkit import toc
from bookkit.execute import ExecutionFailed, Run, execute
from bookkit.facts import Facts
from tests.bookkit.small_book import PARAMETERS, code, markdown, notebook, write_notebook

pytestmark = pytest.mark.slow


def run(project, *cells, **parameters):
    write_notebook(
        project.book / "01_first.ipynb", notebook(markdown("# First"), code(PARAMETERS, "parameters"), *cells)
    )
    return execute(project, toc.chapters(project)[0], parameters)


def printed(result):
    return "".join(output.text for output in result.nb.cells[-1].outputs).split()


def test_a_failure_names_chapter_cell_and_message(project):
    with pytest.raises(ExecutionFailed) as failure:
        run(project, markdown("text"), code("# first a comment\nx = 1\nraise ValueError('heads must divide')"), seed=1)
    message = str(failure.value)
    assert message.splitlines() == [
        "chapter 1 (01_first), cell 4: ValueError: heads must divide",
        "  the cell begins: x = 1",
        "  raised at line 3: raise ValueError('heads must divide')",
    ]


def test_a_failure_writes_nothing(project):
    write_notebook(project.book / "01_first.ipynb", notebook(markdown("# First"), code("1 / 0", "parameters")))
    before = sorted(project.root.rglob("*"))
    with pytest.raises(ExecutionFailed, match=r"cell 2: ZeroDivisionError"):
        execute(project, toc.chapters(project)[0], {"profile": "quick"})
    assert sorted(project.root.rglob("*")) == before


def test_a_kernel_that_dies(project):
    with pytest.raises(ExecutionFailed, match="the kernel died"):
        run(project, code("import os\nos._exit(1)"))


def test_what_a_chapter_sees(project, monkeypatch):
    monkeypatch.setenv("MANYHEADS_PROFILE", "full")
    source = (
        "import os, pathlib, manyheads\n"
        "print(profile, seed, manyheads.__version__, pathlib.Path.cwd().name, "
        "*(os.environ[name] for name in ('MANYHEADS_PROFILE', 'MANYHEADS_EXPLORE', 'PYTHONHASHSEED')))"
    )
    result = run(project, code(source), profile="gpu", seed=5)
    assert printed(result) == ["gpu", "5", "9.9", "book", "gpu", "static", "0"]
    assert os.environ["MANYHEADS_PROFILE"] == "full"  # ours is as it was
    assert result.facts.profile == "gpu"
    assert result.facts.seconds > 0


def test_stored_outputs_are_not_taken_for_new_ones(project):
    cell = code("pass")
    cell.execution_count, cell.outputs = 9, [new_output("stream", name="stdout", text="old")]
    assert printed(run(project, cell)) == []


def test_one_line_a_chapter(project):
    chapter = toc.chapters(project)[0]
    facts = Facts("2026-01-02", 12.34, "2 CPU cores", "3.11.1", "2.13.0", "quick")
    assert str(Run(chapter, None, facts)).split() == ["1", "First", "things", "12.3", "s"]
    assert str(Run(chapter, None, facts, cached=True)).split() == ["1", "First", "things", "cached"]
