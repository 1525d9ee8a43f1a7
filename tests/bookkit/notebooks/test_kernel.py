import pytest

from bookkit.notebooks import toc
from bookkit.notebooks.execute import ExecutionFailed, execute
from tests.bookkit.small_book import PARAMETERS, code, make_project, markdown, notebook, write_notebook

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return make_project(tmp_path_factory.mktemp("kernel") / "checkout")


def message(project, *sources):
    """What is said about a chapter that does not come to its end."""
    cells = [markdown("# First"), code(PARAMETERS, "parameters"), *(code(source) for source in sources)]
    write_notebook(project.book / "01_first.ipynb", notebook(*cells))
    with pytest.raises(ExecutionFailed) as failure:
        execute(project, toc.chapters(project)[0], {"profile": "quick"})
    return str(failure.value).splitlines()


KILL = "import os, signal\nos.kill(os.getpid(), signal.{})"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import os\nos._exit(3)", "the kernel ended with exit code 3"),
        (KILL.format("SIGKILL"), "the kernel was ended by SIGKILL; the usual reason is too little memory"),
        (KILL.format("SIGSEGV"), "the kernel was ended by SIGSEGV; compiled code read memory that is not its own"),
        ("exit()", "exit() ends the kernel, and with it the chapter"),
        ("import sys\nsys.exit(0)", "SystemExit: 0"),
    ],
)
def test_the_end_of_a_kernel_names_the_cell_and_what_is_known(project, capfd, source, reason):
    """In the last cell too, where nothing that follows would fail."""
    first = source.splitlines()[0]
    assert message(project, source)[:2] == [f"chapter 1 (01_first), cell 3: {reason}", f"  the cell begins: {first}"]
    assert capfd.readouterr().err == ""


def test_a_cell_after_the_end_is_not_blamed(project):
    assert message(project, "1", "exit()", "2")[0].startswith("chapter 1 (01_first), cell 4: exit()")


def test_a_kernel_that_does_not_start(project):
    broken = project.source / "ipykernel_launcher.py"
    broken.write_text("raise ImportError('the environment is not whole')")
    try:
        said = message(project, "1")
    finally:
        broken.unlink()
    assert said == ["chapter 1 (01_first): the kernel did not start: ImportError: the environment is not whole"]
