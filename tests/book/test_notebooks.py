"""The committed notebooks: in order, in sync with the code, and the same bytes every time."""

import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from bookkit import pipeline
from bookkit.notebooks import normalise, parameters, toc
from bookkit.notebooks.cache import Cache
from bookkit.notebooks.environment import controlled
from bookkit.project import Project
from tests.book.rounding import same_up_to_rounding

PROJECT = Project.find()
CHAPTERS = toc.chapters(PROJECT)
SANITIZE = Path(__file__).with_name("nbval-sanitize.cfg")
# A run that shares as little as it can with the one that is committed: as on a processor with other instructions.
ELSEWHERE = {"ATEN_CPU_CAPABILITY": "default", "MANYHEADS_EXPLORE": "still", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def elsewhere(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return controlled(PROJECT, home) | ELSEWHERE


def nbval(*paths, environment, n_jobs=1):
    command = ["-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", f"--nbval-sanitize-with={SANITIZE}"]
    jobs = ["-n", str(n_jobs), "--dist", "loadfile"] if n_jobs > 1 else []
    return subprocess.run(
        [sys.executable, *command, "--nbval-current-env", *jobs, "-c", "/dev/null", *map(str, paths)],
        cwd=PROJECT.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_committed_notebooks_and_the_scoreboard_are_in_order():
    pipeline.check(PROJECT)


def test_nbval_finds_the_stored_output_of_every_committed_notebook_again(elsewhere):
    """The one fresh execution."""
    done = nbval(*(chapter.path for chapter in CHAPTERS), environment=elsewhere, n_jobs=2)
    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(r"\d{2,} passed", done.stdout)


@pytest.mark.parametrize(
    ("old", "new", "caught"),
    [
        ("1 + 1", "1 + 2", True),  # a changed number
        ('print("same")', 'print("other")', True),  # a changed text
        ("1 + 1", "1 + 1  # a comment", False),
    ],
)
def test_nbval_catches_a_planted_change(elsewhere, tmp_path, old, new, caught):
    cells = [nbformat.v4.new_code_cell(source) for source in ("1 + 1", 'print("same")')]
    nb = nbformat.v4.new_notebook(cells=cells)
    path = tmp_path / "planted.ipynb"
    nbformat.write(nb, path)
    subprocess.run(
        [sys.executable, "-m", "jupyter", "execute", "--inplace", "--kernel_name=python3", str(path)],
        check=True,
        env=elsewhere,
        capture_output=True,
    )
    nb = nbformat.read(path, 4)
    for cell in nb.cells:
        cell.source = cell.source.replace(old, new)
    nbformat.write(nb, path)
    assert (nbval(path, environment=elsewhere).returncode != 0) == caught


@pytest.mark.parametrize("chapter", CHAPTERS, ids=str)
def test_what_is_committed_is_what_this_build_executed(chapter, site):
    """To the byte, but for what another processor may round otherwise: coordinates in figures."""
    assert site.is_dir()
    plan = parameters.resolve(chapter.read(), str(chapter), {"profile": "quick"})
    cache = Cache(PROJECT)
    run = cache.load(chapter, cache.key(chapter, plan))
    built = normalise.text(normalise.normalise(run.nb, chapter.stem))
    assert same_up_to_rounding(built, chapter.path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=str)
def test_an_unknown_parameter_is_refused_before_anything_runs(chapter, root):
    before = chapter.path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "bookkit", "build", "--only", str(chapter.number), "-p", "n_head", "3"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "n_head" in done.stderr
    assert "Traceback" not in done.stderr
    assert chapter.path.read_bytes() == before


@pytest.mark.parametrize("chapter", CHAPTERS, ids=str)
def test_a_chapter_has_what_a_chapter_needs(chapter):
    nb = chapter.read()
    words = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    code = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "code")
    assert "<!-- facts -->" in words
    assert len(re.findall(r"\{exercise\}", words)) >= 3
    assert len(re.findall(r"\{solution-start\}", words)) == len(re.findall(r"\{exercise\}", words))
    assert code.count("explore(") >= 2
    assert "sweep.recorded(" in code
    assert "## Sources" in words
    assert "What would change our mind" in words


@pytest.mark.parametrize("chapter", CHAPTERS, ids=str)
def test_every_name_in_prose_is_glued_and_every_glued_name_is_used(chapter):
    nb = chapter.read()
    named = set(re.findall(r"\{glue:text\}`([^`:]+)", "\n".join(c.source for c in nb.cells)))
    outputs = [output for cell in nb.cells for output in cell.get("outputs", [])]
    glued = {output.metadata["scrapbook"]["name"] for output in outputs if "scrapbook" in output.get("metadata", {})}
    assert named == glued


@pytest.mark.parametrize("chapter", CHAPTERS, ids=str)
def test_a_committed_notebook_names_no_path_of_a_machine_and_no_date(chapter):
    outputs = json.dumps([cell.get("outputs", []) for cell in chapter.read().cells])
    assert not re.search(r"(?<![\w.])/(home|root|work|Users|tmp)/", outputs)
    assert "ipykernel_" not in outputs
    assert "Last executed" not in outputs
