"""Run one chapter with papermill."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from bookkit.errors import BookError
from bookkit.facts import Facts
from bookkit.parameters import DEFAULT_PROFILE
from bookkit.project import Project
from bookkit.toc import Chapter

INJECTED = "injected-parameters"
_MESSAGE = 1000  # characters of an exception's message that are shown
START_TIMEOUT = 120  # seconds; a kernel starts slowly on a machine that is busy with something else


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
    """Execute a chapter from its source and return the result; nothing is written.

    ``parameters`` come from :func:`bookkit.parameters.resolve`. The kernel runs in the folder of the notebook, as it
    does in JupyterLab and under nbval, and sees the checkout's own ``src``.

    Raises
    ------
    ExecutionFailed
        When a cell raises, or the kernel dies.
    """
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    nb = chapter.read()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="bookkit-") as scratch:
        source = Path(scratch) / chapter.path.name  # papermill reads a file, and a read-only one will do
        source.write_text(_without_outputs(nb), encoding="utf-8")
        try:
            with _environment(_kernel_environment(project, parameters, scratch)):
                nb = papermill.execute_notebook(
                    source,
                    None,
                    parameters=dict(parameters),
                    kernel_name="python3",
                    language="python",
                    cwd=chapter.path.parent,
                    progress_bar=_progress_bar(chapter),
                    start_timeout=START_TIMEOUT,
                    extra_arguments=["--IPKernelApp.log_level=CRITICAL"],  # the kernel's own notes are not for readers
                )
        except PapermillExecutionError as error:
            raise ExecutionFailed(_failure(chapter, nb, error)) from None
        except DeadKernelError:
            raise ExecutionFailed(f"{chapter}: the kernel died; the usual reason is too little memory") from None
    return Run(chapter, nb, Facts.now(time.perf_counter() - started, str(parameters.get("profile", DEFAULT_PROFILE))))


def _without_outputs(nb: NotebookNode) -> str:
    bare = deepcopy(nb)
    for cell in bare.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    bare.metadata.pop("widgets", None)
    return nbformat.writes(bare)


def _kernel_environment(project: Project, parameters: Mapping[str, str | int], scratch: str) -> dict[str, str]:
    """The variables that shape a run, so that two runs on two machines differ as little as they can."""
    path = [str(project.source), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",  # sums depend on the number of threads; and small models gain nothing from two
        "MANYHEADS_PROFILE": str(parameters.get("profile", DEFAULT_PROFILE)),
        "MANYHEADS_EXPLORE": "static",  # explorers draw all their states instead of waiting for a kernel
        "IPYTHONDIR": scratch,  # no start-up files or history of the person who runs it
    }


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def _progress_bar(chapter: Chapter) -> dict[str, Any] | bool:
    """A bar that vanishes when the chapter is done, and none at all in a log file."""
    if not sys.stderr.isatty():
        return False
    return {"desc": f"{chapter.number:>3}  {chapter.title}", "leave": False}


def _failure(chapter: Chapter, nb: NotebookNode, error: Any) -> str:
    """Chapter, cell and message in a few lines. Cells are counted from 1, as they are in the committed notebook."""
    position = error.cell_index
    tagged = [i for i, cell in enumerate(nb.cells) if "parameters" in cell.metadata.get("tags", [])]
    if tagged and position > tagged[0]:
        position -= 1  # papermill counts the cell that it injects after the tagged one
    code = [line.strip() for line in error.source.splitlines() if line.strip()]
    first = next((line for line in code if not line.startswith(("#", "%"))), "(empty)")
    lines = [
        f"{chapter}, cell {position + 1}: {error.ename}: {error.evalue[:_MESSAGE]}",
        f"  the cell begins: {first}",
    ]
    where = re.findall(r"^-+> *(\d+) (.*)$", re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback)), flags=re.M)
    if where:
        lines.append(f"  raised at line {where[-1][0]}: {where[-1][1].strip()}")
    return "\n".join(lines)
