"""Run one chapter with papermill."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbformat import NotebookNode

from bookkit.errors import BookError
from bookkit.notebooks.environment import controlled
from bookkit.notebooks.facts import Facts
from bookkit.notebooks.parameters import DEFAULT_PROFILE
from bookkit.notebooks.toc import Chapter
from bookkit.project import Project

if TYPE_CHECKING:
    from bookkit.notebooks.kernel import Stopped

TRACES = ("papermill", "execution", "widgets", "kernelspec", "language_info")  # what a run leaves in metadata
_MESSAGE = 1000  # characters of an exception's message that are shown
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class ExecutionFailed(BookError):
    """A chapter raised: which one, in which cell, and with what message."""


@dataclass(frozen=True)
class Run:
    """A chapter as it was executed: the notebook with papermill's traces still in it, and the facts about the run."""

    chapter: Chapter
    nb: NotebookNode
    facts: Facts
    cached: bool = False

    def __str__(self) -> str:
        took = "cached" if self.cached else f"{self.facts.seconds:.1f} s"
        return f"{self.chapter.number:>3}  {self.chapter.title:<52} {took:>8}"


def execute(project: Project, chapter: Chapter, parameters: Mapping[str, str | int]) -> Run:
    """Execute a chapter from its source and return the result; only ``_build`` is written to.

    ``parameters`` come from :func:`bookkit.notebooks.parameters.resolve`. The kernel sees the checkout's own ``src``
    and runs in an empty folder, as a copy does in Colab: a chapter cannot come to depend on a file beside it.

    Raises
    ------
    ExecutionFailed
        When a cell raises or ends the kernel, or the kernel dies.
    """
    import papermill

    from bookkit.notebooks.kernel import ENGINE, Kernel, Stopped

    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="bookkit-", ignore_cleanup_errors=True) as scratch:
        home, folder = Path(scratch) / "home", Path(scratch) / "chapter"
        home.mkdir()
        folder.mkdir()
        source = Path(scratch) / chapter.path.name  # papermill reads a file, and a read-only one will do
        source.write_text(bare(chapter.read()), encoding="utf-8")
        try:
            nb = papermill.execute_notebook(
                source,
                None,
                parameters=dict(parameters),
                engine_name=ENGINE,
                kernel=Kernel(controlled(project, home) | _settings(parameters), folder, Path(scratch)),
                kernel_name="python3",
                language="python",
                progress_bar=_progress_bar(chapter),
            )
        except Stopped as stopped:
            raise ExecutionFailed(_failure(chapter, stopped)) from None
    return Run(chapter, nb, Facts.now(time.perf_counter() - started, str(parameters.get("profile", DEFAULT_PROFILE))))


def bare(nb: NotebookNode) -> str:
    """Return the notebook as it is run: without outputs, and without traces of where it was run before."""
    nb = deepcopy(nb)
    for trace in TRACES:
        nb.metadata.pop(trace, None)
    for cell in nb.cells:
        for trace in TRACES:
            cell.metadata.pop(trace, None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nbformat.writes(nb)


def _settings(parameters: Mapping[str, str | int]) -> dict[str, str]:
    """The variables that only chapters read."""
    return {
        "OMP_NUM_THREADS": "1",  # sums depend on the number of threads; and small models gain nothing from two
        "MANYHEADS_PROFILE": str(parameters.get("profile", DEFAULT_PROFILE)),
        "MANYHEADS_EXPLORE": "static",  # explorers draw all their states instead of waiting for a kernel
    }


def _progress_bar(chapter: Chapter) -> dict[str, Any] | bool:
    """A bar that vanishes when the chapter is done, and none at all in a log file."""
    if not sys.stderr.isatty():
        return False
    return {"desc": f"{chapter.number:>3}  {chapter.title}", "leave": False}


def _failure(chapter: Chapter, stopped: Stopped) -> str:
    """Chapter, cell and reason in a few lines. Cells are counted from 1, as they are in the committed notebook."""
    reason = stopped.reason[:_MESSAGE]
    if stopped.cell is None:
        return f"{chapter}: {reason}"
    code = [line.strip() for line in stopped.cell.source.splitlines() if line.strip()]
    first = next((line for line in code if not line.startswith(("#", "%"))), "(empty)")
    lines = [f"{chapter}, cell {stopped.number}: {reason}", f"  the cell begins: {first}"]
    trace = _ANSI.sub("", "\n".join(stopped.traceback))
    where = re.findall(r"^-+> *(\d+) (.*)$", trace, flags=re.M)
    if where:
        lines.append(f"  raised at line {where[-1][0]}: {where[-1][1].strip()}")
    if reason.startswith(("ModuleNotFoundError", "FileNotFoundError")):
        lines.append("  chapters run in an empty folder, as in Colab: what they need is in src/manyheads or recordings")
    return "\n".join(lines)
