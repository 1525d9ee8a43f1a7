import base64
import io
import os
import re
import subprocess
import sys
import zipfile

import nbformat
import pytest

from bookkit.colab import copies, setup
from bookkit.errors import BookError, NotebookError
from bookkit.notebooks import toc
from bookkit.notebooks.normalise import normalise
from bookkit.reading import STATE, VIEW
from tests.bookkit.small_book import markdown


@pytest.fixture
def notebooks(built, runs):
    return {run.chapter: normalise(run.nb, run.chapter.stem) for run in runs}


def names(archive):
    return zipfile.ZipFile(io.BytesIO(archive)).namelist()


def test_the_bundle_is_laid_out_like_the_checkout(project):
    assert names(setup.bundle(project, "")) == ["src/manyheads/__init__.py", "claims.toml", "recordings/run.json"]


def test_the_tools_are_in_no_copy(project):
    (project.source / "bookkit").mkdir()
    (project.source / "bookkit/__init__.py").touch()
    (project.source / "manyheads/__pycache__").mkdir()
    (project.source / "manyheads/__pycache__/x.pyc").touch()
    assert not any("bookkit" in name or "pyc" in name for name in names(setup.bundle(project, "")))


def test_large_recordings_are_in_the_copies_that_use_them(project):
    zoo = project.root / "recordings/zoo/model.safetensors"
    zoo.parent.mkdir()
    zoo.write_bytes(b"weights")
    assert "recordings/zoo/model.safetensors" not in names(setup.bundle(project, "gazoo = 1"))
    assert "recordings/zoo/model.safetensors" in names(setup.bundle(project, "from manyheads.experiments import zoo"))


def test_equal_contents_give_equal_bytes(project):
    before = setup.bundle(project, "")
    for path in project.source.rglob("*.py"):
        os.utime(path, (1, 1))
    assert setup.bundle(project, "") == before


def test_a_checkout_without_the_package(project):
    (project.source / "manyheads/__init__.py").unlink()
    with pytest.raises(BookError, match="no package for the Colab copies"):
        setup.bundle(project, "")


@pytest.mark.slow
def test_what_a_copy_holds(built, notebooks):
    made = copies.make(built, notebooks)
    assert made == copies.make(built, notebooks)
    nb = nbformat.reads(made["01_first.ipynb"].decode(), 4)
    nbformat.validate(nb)
    assert nb.metadata.accelerator == "GPU"
    assert nb.metadata.colab.name == "01_first.ipynb"
    assert nb.cells[0].id == "colab-setup"
    assert VIEW not in made["01_first.ipynb"].decode()
    assert STATE not in made["01_first.ipynb"].decode()
    assert "MANYHEADS_PROFILE" not in nb.cells[0].source
    install = next(line for line in nb.cells[0].source.splitlines() if "pip" in line)
    assert "==" not in install
    assert "-U" not in install
    assert "['torch', 'ipywidgets']" in nb.cells[0].source
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    assert "> **Theorem 1.1** (Doubling). By (1.1), see Shannon (1948)." in text
    assert "The next chapter is there." in text
    assert "<!--" not in text


@pytest.mark.slow
def test_a_copy_runs_in_an_empty_folder(built, tmp_path):
    (tmp_path / "copy.ipynb").write_bytes((built.html / "colab/01_first.ipynb").read_bytes())
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MANYHEADS_PROFILE")}
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", "copy.ipynb", "out.ipynb"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    nb = nbformat.read(tmp_path / "out.ipynb", 4)
    printed = [output.text for cell in nb.cells for output in cell.get("outputs", []) if "text" in output]
    assert re.fullmatch(r"manyheads 9\.9, torch \S+, device: .+\n", printed[0])  # the packed one, not an installed one
    assert printed[1] == "quick 0 42\n"


def test_values_of_the_chapter_reach_its_prose(project):
    nb = toc.chapters(project)[0].read()
    data = {copies.GLUE: "'softmax'"}
    nb.cells[2].outputs = [nbformat.v4.new_output("display_data", data, metadata={"scrapbook": {"name": "kind"}})]
    assert copies.glued(nb) == {"kind": "softmax"}


def test_myst_that_is_left_is_refused(project, monkeypatch):
    first, second = toc.chapters(project)
    notebooks = {first: first.read(), second: second.read()}
    notebooks[first].cells.insert(1, markdown("{eq}`a`"))
    monkeypatch.setattr("bookkit.colab.markdown.Plain.convert", lambda self, source: source)
    with pytest.raises(NotebookError, match=r"cell 2 still has \{eq\}"):
        copies.make(project, notebooks)


def test_a_copy_that_colab_would_not_open(project, monkeypatch):
    chapters = toc.chapters(project)
    monkeypatch.setattr(copies, "MAX_BYTES", 1000)
    with pytest.raises(NotebookError, match="Colab opens up to"):
        copies.make(project, {chapter: chapter.read() for chapter in chapters})


@pytest.mark.slow
def test_the_zip_in_the_copy_is_the_package(built):
    nb = nbformat.read(built.html / "colab/02_second.ipynb", 4)
    packed = re.search(r'BUNDLE = """(.*?)"""', nb.cells[0].source, flags=re.S)[1]
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(packed)))
    assert archive.read("src/manyheads/__init__.py") == (built.source / "manyheads/__init__.py").read_bytes()
