import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_output

from bookkit.notebooks import toc
from bookkit.notebooks.execute import ExecutionFailed, Run, execute
from bookkit.notebooks.facts import Facts
from bookkit.notebooks.normalise import normalise, text
from tests.bookkit.small_book import PARAMETERS, code, make_project, markdown, notebook, write_notebook

pytestmark = pytest.mark.slow
SOURCE = Path(toc.__file__).parents[2]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """One for all: every test writes the chapter that it runs."""
    return make_project(tmp_path_factory.mktemp("execute") / "checkout")


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


def test_a_failure_writes_nothing_but_what_the_kernel_is_given(project):
    write_notebook(project.book / "01_first.ipynb", notebook(markdown("# First"), code("1 / 0", "parameters")))

    def checkout():
        return sorted(path for path in project.root.rglob("*") if not path.is_relative_to(project.build))

    before = checkout()
    with pytest.raises(ExecutionFailed, match=r"cell 2: ZeroDivisionError"):
        execute(project, toc.chapters(project)[0], {"profile": "quick"})
    assert checkout() == before
    assert [path.name for path in project.build.iterdir()] == ["matplotlib"]


def test_cells_are_counted_as_in_the_chapter_without_parameters_too(project):
    with pytest.raises(ExecutionFailed, match=r"cell 3: ZeroDivisionError"):
        run(project, code("1 / 0"))


@pytest.mark.parametrize("source", ["import helper", "open('helper.py')"])
def test_a_file_beside_a_chapter_is_out_of_reach(project, source):
    """Nothing would notice when it changes, and a copy in Colab does not have it."""
    (project.book / "helper.py").write_text("value = 1")
    with pytest.raises(ExecutionFailed, match=r"(?s)cell 3: \w+NotFoundError.*helper.*an empty folder, as in Colab"):
        run(project, code(source))


def test_what_a_chapter_sees(project, monkeypatch):
    monkeypatch.setenv("MANYHEADS_PROFILE", "full")
    source = (
        "import os, manyheads\n"
        "print(profile, seed, manyheads.__version__, os.listdir(), "
        "*(os.environ[name] for name in ('MANYHEADS_PROFILE', 'MANYHEADS_EXPLORE', 'PYTHONHASHSEED')))"
    )
    result = run(project, code(source), profile="gpu", seed=5)
    assert printed(result) == ["gpu", "5", "9.9", "[]", "gpu", "static", "0"]
    assert os.environ["MANYHEADS_PROFILE"] == "full"  # ours is as it was
    assert result.facts.profile == "gpu"
    assert result.facts.seconds > 0


LOOK_AROUND = """
import locale, os, shutil, sys, time, warnings
from pathlib import Path

import matplotlib
fonts = list(Path(matplotlib.get_cachedir()).glob("fontlist*"))
import matplotlib.pyplot as plt
import manyheads

plt.plot([1, 2])
plt.title("ş")
(Path.home() / "file").touch()
print(manyheads.__version__, len(fonts), sys.executable)
print(locale.getlocale(), locale.getpreferredencoding(), time.tzname, shutil.get_terminal_size(), "ş")
print(matplotlib.get_backend(), [f[0] for f in warnings.filters], "started" in globals())
"""
EXECUTE = """
import sys
from bookkit.notebooks import toc
from bookkit.notebooks.execute import execute
from bookkit.notebooks.normalise import normalise, text
from bookkit.project import Project

project = Project.find(sys.argv[1])
run = execute(project, toc.chapters(project)[0], {"profile": "quick"})
sys.stdout.buffer.write(text(normalise(run.nb, "01_first")).encode())
"""


def bare(folder):
    return {"LC_ALL": "C", "PYTHONPATH": str(SOURCE)}


def of_a_person_with_habits(folder):
    (folder / "start.py").write_text("started = True\nprint('hello')")
    (folder / "manyheads.py").write_text("__version__ = 'another checkout'")
    spec = folder / "kernels/python3/kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["/bin/false"], "display_name": "mine", "language": "python"}))
    nowhere = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR")
    return {
        **dict.fromkeys(nowhere, "/proc/nowhere"),
        **{"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Tokyo", "COLUMNS": "40", "NO_COLOR": "1", "PYTHONWARNINGS": "always"},
        **{"MPLBACKEND": "svg", "PYTHONSTARTUP": str(folder / "start.py"), "JUPYTER_PATH": str(folder)},
        **{"JOBLIB_MULTIPROCESSING": "0", "DASK_SCHEDULER_ADDRESS": "tcp://nowhere", "PYTHONIOENCODING": "ascii"},
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(folder)]),
    }


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The chapter that looks around, in a checkout of its own, as it comes out in the environment of these tests."""
    project = make_project(tmp_path_factory.mktemp("here") / "checkout")
    return project, run(project, code(LOOK_AROUND), profile="quick").nb


@pytest.mark.parametrize("variables", [bare, of_a_person_with_habits])
def test_a_chapter_gives_the_same_bytes_whoever_runs_it(here, tmp_path, variables):
    project, nb = here
    environment = {"PATH": os.environ["PATH"], **variables(tmp_path)}
    there = subprocess.run([sys.executable, "-c", EXECUTE, project.root], env=environment, capture_output=True)
    assert there.returncode == 0, there.stderr.decode()
    assert there.stdout.decode() == text(normalise(nb, "01_first"))
    assert nb.cells[-1].outputs[0].text.startswith(f"9.9 1 {sys.executable}\n")


def test_stored_outputs_are_not_taken_for_new_ones(project):
    cell = code("pass")
    cell.execution_count, cell.outputs = 9, [new_output("stream", name="stdout", text="old")]
    assert printed(run(project, cell)) == []


def test_one_line_a_chapter(project):
    chapter = toc.Chapter(1, "01_first", project.book / "01_first.ipynb", "First things")
    facts = Facts("2026-01-02", 12.34, "2 CPU cores", "3.11.1", "2.13.0", "quick")
    assert str(Run(chapter, None, facts)).split() == ["1", "First", "things", "12.3", "s"]
    assert str(Run(chapter, None, facts, cached=True)).split() == ["1", "First", "things", "cached"]
