import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest

from bookkit import pipeline
from bookkit.errors import BookError, ClaimError, ParameterError
from bookkit.notebooks import toc
from bookkit.notebooks.execute import ExecutionFailed
from bookkit.notebooks.normalise import problems, text
from bookkit.project import files_under
from tests.bookkit.small_book import chapter_one, chapter_two, code, write_notebook

pytestmark = pytest.mark.slow


def everything(project):
    """The checkout, without what can be made again."""
    return {path: path.read_bytes() for path in files_under(project.root) if not path.is_relative_to(project.build)}


@pytest.fixture
def committed(project, runs, built):
    """The small book after ``refresh``."""
    for chapter, run in zip(toc.chapters(project), runs, strict=True):
        chapter.path.write_text(text(pipeline.normalise(run.nb, chapter.stem)))
    board = (built.build / "stage/book/scoreboard.md").read_text()
    (project.book / "scoreboard.md").write_text(board)
    return project


def test_refresh_writes_what_check_accepts_and_then_nothing_more(project, ledger):
    changed = pipeline.refresh(project, ledger=ledger)
    assert [path.name for path in changed] == ["01_first.ipynb", "02_second.ipynb", "scoreboard.md"]
    for chapter in toc.chapters(project):
        assert problems(chapter.read()) == []
    pipeline.check(project, ledger=ledger)
    before = everything(project)
    assert pipeline.refresh(project, ledger=ledger) == []
    assert everything(project) == before


def test_a_failing_chapter_writes_no_notebook(committed, ledger):
    write_notebook(committed.book / "02_second.ipynb", chapter_two(code("raise RuntimeError('late')")))
    before = everything(committed)
    with pytest.raises(ExecutionFailed, match=r"chapter 2 \(02_second\), cell 4: RuntimeError: late"):
        pipeline.refresh(committed, ledger=ledger, only=["2"])
    assert everything(committed) == before


def test_a_claim_judged_twice_stops_the_build(project, ledger, offline):
    write_notebook(project.book / "01_first.ipynb", chapter_one(code('manyheads.judge("A1")')))
    with pytest.raises(ClaimError, match="A1 is judged 2 times"):
        pipeline.build(project, ledger=ledger)
    assert not project.html.exists()


def test_an_unknown_parameter_executes_nothing(project, ledger, offline, monkeypatch):
    monkeypatch.setattr(pipeline, "execute", lambda *args: pytest.fail("a chapter was executed"))
    with pytest.raises(ParameterError, match=r"chapter 2 \(02_second\) does not assign it: unknown parameter 'seed'"):
        pipeline.build(project, given={"seed": 1}, ledger=ledger)
    assert not project.build.exists()


def test_only_one_chapter_with_a_parameter(committed, ledger, offline, monkeypatch, capsys):
    staged = {}
    monkeypatch.setattr(pipeline.sphinx, "publish", lambda project, files, extra: staged.update(files, **extra) or True)
    pipeline.build(committed, only=["1"], given={"seed": 7}, ledger=ledger)
    first = nbformat.reads(staged["book/01_first.ipynb"].decode(), 4)
    assert first.cells[2].outputs[0].text == "quick 7 42\n"
    assert not any("injected-parameters" in cell.metadata.get("tags", []) for cell in first.cells)
    second = nbformat.reads(staged["book/02_second.ipynb"].decode(), 4)
    assert "Last executed" not in second.cells[0].source
    assert "colab/02_second.ipynb" in staged
    assert "Second things" not in capsys.readouterr().out


def unexecuted(project):
    nb = chapter_one()
    write_notebook(project.book / "01_first.ipynb", nb)
    return "cell 3 was not executed"


def rewritten(change, message):
    def fault(project):
        path = project.book / "01_first.ipynb"
        nb = nbformat.read(path, 4)
        change(nb)
        path.write_text(text(nb))
        return message

    return fault


def inject(nb):
    nb.cells.insert(2, code("seed = 3", "injected-parameters"))


def swap_counts(nb):
    nb.cells[2].execution_count, nb.cells[3].execution_count = 3, 2


def grow(nb):
    nb.cells[2].outputs[0].text = "x" * 1_600_000


def untag(nb):
    nb.cells[1].metadata.tags = []


def add_parameter(nb):
    nb.cells[1].source += "\nwidth = 3"


def judge_again(nb):
    nb.cells[-1].outputs *= 2


def hide_id(nb):
    nb.cells[-1].source = "manyheads.judge(claim)"


def stale_scoreboard(project):
    (project.book / "scoreboard.md").write_text("# Scoreboard\n")
    return "scoreboard.md: differs from the verdicts"


def reformatted(project):
    path = project.book / "01_first.ipynb"
    path.write_text(path.read_text().replace("\n ", "\n   "))
    return "not in the form"


FAULTS = {
    "unexecuted": unexecuted,
    "injected cell": rewritten(inject, "cell 3 was injected by papermill"),
    "counts out of order": rewritten(swap_counts, "cell 3 ran as number 3 instead of 2"),
    "too large": rewritten(grow, "the limit is 1.5 MB"),
    "no parameters cell": rewritten(untag, "exactly one code cell tagged 'parameters'"),
    "unknown parameter": rewritten(add_parameter, "unknown parameter 'width'"),
    "stale scoreboard": stale_scoreboard,
    "other form": reformatted,
    "claim not judged": rewritten(lambda nb: nb.cells.pop(), "A1 is not judged"),
    "claim judged twice": rewritten(judge_again, "A1 is judged 2 times"),
    "claim not named": rewritten(hide_id, "01_first, cell 6: judge(claim) must name its claim as a literal"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_finds_a_planted_fault(committed, ledger, fault):
    pipeline.check(committed, ledger=ledger)
    message = FAULTS[fault](committed)
    with pytest.raises(BookError) as failure:
        pipeline.check(committed, ledger=ledger)
    assert message in str(failure.value)


def test_copies_of_the_committed_notebooks(committed, built, tmp_path):
    paths = pipeline.write_colab(committed, tmp_path / "out")
    assert [path.name for path in paths] == ["01_first.ipynb", "02_second.ipynb"]
    assert paths[0].read_bytes() == (built.html / "colab/01_first.ipynb").read_bytes()


FULL_DISK = """
import resource, sys
from bookkit.cli import main

resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # the first file that is larger cannot be written
sys.exit(main(["--root", sys.argv[1], "colab", "--out", sys.argv[2]]))
"""


def test_a_disk_that_is_full(committed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(pipeline.__file__).parents[1])}
    command = [sys.executable, "-c", FULL_DISK, committed.root, tmp_path / "out"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"error: in the book or in {tempfile.gettempdir()}: File too large; free some space\n"
    assert list((tmp_path / "out").iterdir()) == []


def folder(place):
    (place / "html").mkdir(parents=True)


def link(place):
    place.symlink_to(place.parent / "book")


@pytest.mark.parametrize("make", [folder, link, Path.touch, lambda place: None])
def test_clean(project, capsys, make):
    make(project.build)
    pages = sorted(project.book.iterdir())
    pipeline.clean(project)
    assert not os.path.lexists(project.build)
    assert sorted(project.book.iterdir()) == pages


def test_chapters_run_side_by_side_and_an_interrupt_ends_them_at_once(project):
    """Both chapters wait for a file that the other writes, which ends well only when they run at the same time."""
    meet = "import pathlib, time\nplace = pathlib.Path({place!r})\n(place / {own!r}).touch()\n"
    meet += "while not (place / {other!r}).exists():\n    time.sleep(0.05)\n"
    for path, make, own, other in (("01_first", chapter_one, "a", "b"), ("02_second", chapter_two, "b", "a")):
        cell = code(meet.format(place=str(project.root), own=own, other=other))
        endless = code(f"(place / '{own}{own}').touch()\ntime.sleep(600)")
        write_notebook(project.book / f"{path}.ipynb", make(cell, endless))
    source = f"""
import os, pathlib, signal, threading, time
from bookkit import cli, pipeline
pipeline.cores = lambda: 2
root = pathlib.Path({str(project.root)!r})
def interrupt():
    while not all((root / name).exists() for name in ("aa", "bb")):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
raise SystemExit(cli.main(["--root", str(root), "refresh"]))
"""
    env = os.environ | {"PYTHONPATH": str(Path(pipeline.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", source], env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
