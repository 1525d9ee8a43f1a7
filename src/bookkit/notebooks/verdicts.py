"""Count the verdict cards of the executed chapters: every claim of a chapter in the book, judged once and openly."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from nbformat import NotebookNode

from bookkit.errors import ClaimError
from bookkit.notebooks.toc import Chapter
from bookkit.reading import VERDICT as MIME


class Ledger(Protocol):
    """What is needed of :mod:`manyheads.reporting.claims`."""

    def check(self, verdicts: Iterable[Mapping[str, Any]], chapters: Iterable[int]) -> list[str]:
        """Return what is wrong with the cards."""

    def scoreboard(self, verdicts: Iterable[Mapping[str, Any]], chapters: Iterable[int]) -> str:
        """Return the scoreboard page."""


def collect(notebooks: Mapping[Chapter, NotebookNode]) -> list[dict[str, Any]]:
    """Return the cards in the outputs, each with the number of the chapter it was ``found_in`` and that chapter's page.

    Pages are named as seen from the scoreboard, which lies beside the chapters.
    """
    return [
        {**output.data[MIME], "found_in": chapter.number, "page": f"{chapter.stem}.html"}
        for chapter, nb in notebooks.items()
        for cell in nb.cells
        for output in cell.get("outputs", [])
        if MIME in output.get("data", {})
    ]


def problems(notebooks: Mapping[Chapter, NotebookNode], ledger: Ledger) -> list[str]:
    """Return the claims that are not judged exactly once in their chapter, and judgements of a hidden claim."""
    found = list(ledger.check(collect(notebooks), [chapter.number for chapter in notebooks]))
    return found + [problem for chapter, nb in notebooks.items() for problem in hidden_ids(nb, chapter.stem)]


def scoreboard(notebooks: Mapping[Chapter, NotebookNode], ledger: Ledger) -> str:
    """Return the scoreboard page as Markdown.

    Raises
    ------
    ClaimError
        When there are :func:`problems`; the message lists them.
    """
    found = problems(notebooks, ledger)
    if found:
        raise ClaimError("\n".join(["the claims do not add up:", *(f"  - {problem}" for problem in found)]))
    page = ledger.scoreboard(collect(notebooks), [chapter.number for chapter in notebooks])
    return page.rstrip("\n") + "\n"


def hidden_ids(nb: NotebookNode, name: str) -> list[str]:
    """Return the calls of ``judge`` whose id is not a string literal: nobody could search the book for such a claim."""
    found = []
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type != "code" or "judge" not in cell.source:
            continue
        for call in _judge_calls(cell.source):
            id = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "id"), None)
            if not (isinstance(id, ast.Constant) and isinstance(id.value, str)):
                written = f"judge({ast.unparse(id) if id else ''})"
                found.append(f"{name}, cell {number}: {written} must name its claim as a literal, such as judge('I7')")
    return found


def _judge_calls(source: str) -> Sequence[ast.Call]:
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        tree = ast.parse(TransformerManager().transform_cell(source))  # cells may hold magics
    except SyntaxError:
        return []  # such a cell fails when it is executed, which says more than we could here
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) == "judge"
    ]
