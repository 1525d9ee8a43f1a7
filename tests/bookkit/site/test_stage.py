import nbformat
import pytest
import yaml
from nbformat.v4 import new_output

from bookkit.notebooks import toc
from bookkit.notebooks.facts import Facts
from bookkit.notebooks.verdicts import MIME
from bookkit.reading import VIEW
from bookkit.site import stage

FACTS = Facts("2026-01-02", 12.3, "2 CPU cores", "3.11.1", "2.13.0", "quick")


@pytest.fixture
def vendor(project):
    (project.vendor / "mathjax").mkdir(parents=True)
    (project.vendor / "mathjax/tex-mml-chtml.js").write_text("// math")
    return project.vendor


def staged(project, vendor=None, notebooks=None):
    chapters = toc.chapters(project)
    notebooks = notebooks or {chapter: chapter.read() for chapter in chapters}
    return stage.files(project, notebooks, {chapters[0]: FACTS}, "# Scoreboard\n\nnew\n", vendor)


def config(files):
    return yaml.safe_load(files["_config.yml"])["sphinx"]["config"]


def test_pages_come_from_the_checkout_and_the_scoreboard_is_generated(project):
    files = staged(project)
    assert files["_toc.yml"] == (project.root / "_toc.yml").read_bytes()
    assert files["book/references.bib"] == (project.book / "references.bib").read_bytes()
    assert files["book/scoreboard.md"] == b"# Scoreboard\n\nnew\n"
    assert not any(name.startswith(("src", "_build", "recordings")) for name in files)


def test_facts_are_only_in_the_staged_copies(project):
    before = {path: path.read_bytes() for path in project.book.iterdir()}
    files = staged(project)
    first = nbformat.reads(files["book/01_first.ipynb"].decode(), 4)
    assert "Last executed 2026-01-02 in 12 s" in first.cells[0].source
    assert b"| [1. First things](01_first.ipynb) | a laptop | 12 s |" in files["book/index.md"]
    assert b"[2. Second things](02_second.ipynb) | a laptop | \xe2\x80\x94" in files["book/index.md"]
    assert not any(b"<!--" in content for name, content in files.items() if name.endswith((".md", ".ipynb")))
    assert {path: path.read_bytes() for path in project.book.iterdir()} == before


def test_scripts_are_configured_when_they_are_there(project, vendor):
    files = staged(project, vendor)
    settings = config(files)
    assert files["book/_static/vendor/mathjax/tex-mml-chtml.js"] == b"// math"
    assert f"book/_static/{settings['mathjax_path']}" in files
    assert list(settings["nb_ipywidgets_js"])[1] == "vendor/widgets-local.js"
    assert b"requirejs.config" in files["book/_static/vendor/widgets-local.js"]
    assert settings["html_static_path"] == ["book/_static"]


def test_without_scripts_the_configuration_is_that_of_the_checkout(project):
    files = staged(project, vendor=None)
    assert yaml.safe_load(files["_config.yml"]) == project.config()
    assert not any("vendor" in name for name in files)


def test_scripts_that_lie_in_the_checkout_are_not_taken(project):
    stale = project.book / "_static/vendor/old.js"
    stale.parent.mkdir(parents=True)
    stale.write_text("// old")
    assert not any("old.js" in name for name in staged(project))


def test_pages_outside_the_book_folder_are_taken_when_the_toc_names_them(project):
    (project.root / "CHANGELOG.md").write_text("# Changes\n")
    toc_file = project.root / "_toc.yml"
    toc_file.write_text(toc_file.read_text() + "      - file: CHANGELOG\n")
    assert staged(project)["CHANGELOG.md"] == b"# Changes\n"


def test_after_a_widget_comes_its_figure_for_readers_without_scripts(project):
    chapters = toc.chapters(project)
    notebooks = {chapter: chapter.read() for chapter in chapters}
    data = {VIEW: {"model_id": "1" * 32}, "text/html": "<p>still</p>\n\n<p>more</p>"}
    cell = notebooks[chapters[0]].cells[2]
    cell.outputs = [new_output("display_data", data), new_output("display_data", {"text/html": "<p>plain</p>"})]
    files = staged(project, notebooks=notebooks)
    outputs = nbformat.reads(files["book/01_first.ipynb"].decode(), 4).cells[2].outputs
    assert [VIEW in output.data for output in outputs] == [True, False, False]
    assert outputs[1].data["text/html"] == "<noscript><p>still</p>\n<p>more</p></noscript>"
    assert len(cell.outputs) == 2  # the notebook itself is left alone


def test_cards_lose_their_data_and_keep_their_text(project):
    chapters = toc.chapters(project)
    notebooks = {chapter: chapter.read() for chapter in chapters}
    notebooks[chapters[0]].cells[2].outputs = [new_output("display_data", {MIME: {"id": "A1"}, "text/html": "card"})]
    [output] = nbformat.reads(staged(project, notebooks=notebooks)["book/01_first.ipynb"].decode(), 4).cells[2].outputs
    assert dict(output.data) == {"text/html": "card"}
