"""What Sphinx gets to read: the checkout's pages with executed chapters, facts, and the browser scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path

import nbformat
import yaml
from nbformat import NotebookNode

from bookkit.notebooks.facts import Facts
from bookkit.notebooks.normalise import text
from bookkit.notebooks.toc import Chapter, entries
from bookkit.notebooks.verdicts import MIME
from bookkit.project import Project, files_under
from bookkit.reading import VIEW
from bookkit.site import lines

SCOREBOARD = "book/scoreboard.md"
_SCRIPTS = "book/_static/vendor"
_OURS = "widgets-local.js"


def files(
    project: Project,
    notebooks: Mapping[Chapter, NotebookNode],
    facts: Mapping[Chapter, Facts],
    scoreboard: str,
    vendor: Path | None,
) -> dict[str, bytes]:
    """Return every file of the staging folder by its path; nothing is written.

    Parameters
    ----------
    project
        The checkout.
    notebooks
        Every chapter, executed and normalised with its widgets.
    facts
        The facts of the chapters that were executed for this build.
    scoreboard
        The generated page.
    vendor
        The folder of browser scripts; None leaves the configuration of a plain ``jupyter-book build``.
    """
    staged = {"_config.yml": _config(project, vendor).encode(), "_toc.yml": (project.root / "_toc.yml").read_bytes()}
    for path in _pages(project):
        staged[path.relative_to(project.root).as_posix()] = path.read_bytes()
    staged[SCOREBOARD] = scoreboard.encode()
    rows = [(chapter, facts.get(chapter), lines.needs(nb.metadata)) for chapter, nb in notebooks.items()]
    for name in [name for name in staged if name.endswith(".md")]:
        staged[name] = staged[name].replace(lines.TABLE_MARKER.encode(), lines.chapter_table(rows).encode())
    for chapter, nb in notebooks.items():
        line = lines.chapter_line(chapter, facts.get(chapter), project.colab_base())
        staged[chapter.path.relative_to(project.root).as_posix()] = text(_for_readers(nb, line)).encode()
    if vendor:
        for path in files_under(vendor):  # the stamp too: it says which versions a page was published with
            staged[f"{_SCRIPTS}/{path.relative_to(vendor).as_posix()}"] = path.read_bytes()
        staged[f"{_SCRIPTS}/{_OURS}"] = (Path(__file__).parent / "static" / _OURS).read_bytes()
    return staged


def _pages(project: Project) -> Iterator[Path]:
    """Everything in ``book/``, and what ``_toc.yml`` and ``_config.yml`` name outside it."""
    yield from (path for path in files_under(project.book) if not path.is_relative_to(project.root / _SCRIPTS))
    suffixes = (".md", ".ipynb", ".rst", "")
    named = [project.root / f"{entry}{suffix}" for entry in entries(project) for suffix in suffixes]
    named += [*project.bibliographies(), project.inside(project.setting("logo", kind=str), "_config.yml")]
    yield from (path for path in named if path.is_file())


def _config(project: Project, vendor: Path | None) -> str:
    config = project.config()
    if vendor:
        settings = project.setting("sphinx", "config", kind=dict)
        static = project.setting("sphinx", "config", "html_static_path", kind=list)
        scripts = ("require.js", _OURS, "@jupyter-widgets/html-manager/dist/embed-amd.js")
        settings |= {
            "html_static_path": static if "book/_static" in static else [*static, "book/_static"],
            "mathjax_path": "vendor/mathjax/tex-mml-chtml.js",
            "nb_ipywidgets_js": {f"vendor/{script}": {} for script in scripts},
        }
        config["sphinx"] = project.setting("sphinx", kind=dict) | {"config": settings}
    return yaml.safe_dump(config, sort_keys=False, allow_unicode=True)


def _for_readers(nb: NotebookNode, line: str) -> NotebookNode:
    nb = deepcopy(nb)
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace(lines.FACTS_MARKER, line)
        elif cell.cell_type == "code":
            cell.outputs = [staged for output in cell.outputs for staged in _with_static_figure(output)]
            for output in cell.outputs:
                output.get("data", {}).pop(MIME, None)  # data for the scoreboard; Sphinx warns about it
    return nb


def _with_static_figure(output: NotebookNode) -> Iterator[NotebookNode]:
    """After a widget, its static figure for readers without scripts; a page shows only one of the two."""
    yield output
    figure = output.get("data", {}).get("text/html") if VIEW in output.get("data", {}) else None
    if figure:
        # no blank lines: Markdown would end the block of HTML there
        figure = re.sub(r"\n\s*\n", "\n", figure)
        yield nbformat.v4.new_output("display_data", {"text/html": f"<noscript>{figure}</noscript>"})
