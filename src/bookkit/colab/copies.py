"""Copies of the chapters that run in Colab by themselves: no repository address, no network for the package.

The first cell brings the package (:mod:`~bookkit.colab.setup`); what follows is the chapter in plain Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy

from nbformat import NotebookNode

from bookkit.colab import citations, setup
from bookkit.colab.labels import Labels
from bookkit.colab.markdown import Plain, leftovers
from bookkit.errors import NotebookError
from bookkit.notebooks.normalise import text
from bookkit.notebooks.toc import Chapter
from bookkit.project import Project
from bookkit.reading import GLUE

MAX_BYTES = 20_000_000  # larger notebooks do not open in Colab


def make(project: Project, notebooks: Mapping[Chapter, NotebookNode]) -> dict[str, bytes]:
    """Return the copies by file name.

    Parameters
    ----------
    project
        The checkout, for the package, the ledger, the recordings and the bibliography.
    notebooks
        Every chapter, executed and normalised without widgets: their outputs are in the copies too.

    Raises
    ------
    NotebookError
        When MyST is left in a copy, or a copy is too large for Colab.
    """
    labels = Labels.collect({chapter.number: _markdown(nb) for chapter, nb in notebooks.items()})
    labels.names |= {chapter.stem: chapter.title for chapter in notebooks}
    works = citations.read(project.bibliographies())
    return {
        chapter.path.name: _copy(project, chapter, nb, Plain(chapter.number, labels, works, glued(nb)))
        for chapter, nb in notebooks.items()
    }


def glued(nb: NotebookNode) -> dict[str, str]:
    """Return the values that the chapter's cells published for its prose, by name."""
    return {
        output.metadata["scrapbook"]["name"]: re.sub(r"^(['\"])(.*)\1$", r"\2", output.data[GLUE])
        for cell in nb.cells
        for output in cell.get("outputs", [])
        if GLUE in output.get("data", {}) and "scrapbook" in output.metadata
    }


def _copy(project: Project, chapter: Chapter, nb: NotebookNode, plain: Plain) -> bytes:
    nb = deepcopy(nb)
    code = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "code")
    found, cells = [], [setup.cell(project, code)]
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type == "markdown":
            cell.source = plain.convert(cell.source)
            found += [f"cell {number} still has {rest} in its Colab copy" for rest in leftovers(cell.source)]
        if cell.source.strip():
            cells.append(cell)
    nb.cells = cells
    nb.metadata.update({"accelerator": "GPU", "colab": {"name": chapter.path.name, "provenance": []}})
    content = text(nb).encode()
    if len(content) > MAX_BYTES:
        found.append(f"its Colab copy has {len(content) / 1e6:.0f} MB; Colab opens up to {MAX_BYTES / 1e6:.0f} MB")
    if found:
        raise NotebookError(chapter.stem, found)
    return content


def _markdown(nb: NotebookNode) -> list[str]:
    return [cell.source for cell in nb.cells if cell.cell_type == "markdown"]
