"""The kernel that runs a chapter: of this very Python, and watched, so that its end can be explained."""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbformat import NotebookNode
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines

from bookkit.notebooks.parameters import INJECTED

ENGINE = "bookkit"
_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # what nbclient notes there, Stopped says in our words
_LOG.propagate = False
START_TIMEOUT = 120  # seconds; a kernel starts slowly on a machine that is busy with something else
_QUIET = ["--IPKernelApp.log_level=CRITICAL"]  # the kernel's own notes are not for readers
_LIKELY = {
    signal.SIGKILL: "the usual reason is too little memory",
    signal.SIGSEGV: "compiled code read memory that is not its own",
    signal.SIGABRT: "compiled code gave up",
}


_RUNNING: set[Kernel] = set()


def end_all() -> None:
    """End every kernel that runs, so that nobody waits for chapters that nobody wants any more."""
    for kernel in list(_RUNNING):
        if kernel.process is not None:
            kernel.process.kill()


class Stopped(Exception):
    """A chapter did not get to its end: why, and at which cell. There is none when the kernel did not start."""

    def __init__(self, reason: str, cell: NotebookNode | None, number: int, traceback: list[str] | None = None):
        super().__init__(reason)
        self.reason, self.cell, self.number, self.traceback = reason, cell, number, traceback or []


class Kernel:
    """A kernel that starts from ``sys.executable``, whatever kernels Jupyter knows by the name of ``python3``.

    Parameters
    ----------
    variables
        All the environment variables that it sees.
    folder
        The folder that it runs in.
    scratch
        A folder for the files that keep it in touch with us, and for what it says outside of any cell.
    """

    def __init__(self, variables: Mapping[str, str], folder: Path, scratch: Path):
        # without folders to search, the manager has one kernel only: the one of this interpreter
        native = KernelSpecManager(kernel_dirs=[])
        self.manager = AsyncKernelManager(kernel_spec_manager=native, connection_file=str(scratch / "connection.json"))
        self.variables, self.folder, self.log = dict(variables), folder, scratch / "kernel.log"
        self.process: Any = None
        self.cell: NotebookNode | None = None
        self.number = 0  # of the cell that runs, as it is in the chapter: the one that papermill injects has none

    def run(self, notebook_manager: Any) -> None:
        """Execute the notebook that papermill manages; :class:`Stopped` unless every cell came to its end."""
        client = PapermillNotebookClient(
            notebook_manager,
            km=self.manager,
            startup_timeout=START_TIMEOUT,
            extra_arguments=list(_QUIET),
            on_cell_start=self._starts,
            on_cell_executed=self._ended,
            log=_LOG,
        )
        _RUNNING.add(self)
        with self.log.open("wb") as said:
            try:
                client.execute(cleanup_kc=True, env=self.variables, cwd=str(self.folder), stdout=said, stderr=said)
            except RuntimeError as error:  # nbclient's word for a kernel that died, or did not answer
                raise Stopped(self._end(error), self.cell, self.number) from None
            finally:
                _RUNNING.discard(self)

    def _starts(self, cell: NotebookNode, cell_index: int) -> None:
        self.process, self.cell = self.manager.provisioner.process, cell
        self.number += INJECTED not in cell.metadata.get("tags", [])

    def _ended(self, cell: NotebookNode, cell_index: int, execute_reply: Mapping[str, Any]) -> None:
        reply = execute_reply["content"]
        if reply["status"] != "ok":
            reason = f"{reply.get('ename', reply['status'])}: {reply.get('evalue', '')}".rstrip(": ")
            raise Stopped(reason, cell, self.number, reply.get("traceback"))
        # exit() lets the cell end well, and the kernel with it; after a last cell nobody would notice
        if any(asked.get("source") == "ask_exit" for asked in reply.get("payload", [])):
            raise Stopped("exit() ends the kernel, and with it the chapter", cell, self.number)

    def _end(self, error: RuntimeError) -> str:
        code = self.process and self.process.poll()
        if self.cell is None:
            said = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            return f"the kernel did not start: {said[-1] if said else error}"
        if code is None:
            return f"the kernel does not answer ({error})"
        if code >= 0:
            return f"the kernel ended with exit code {code}"
        name = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")
        return f"the kernel was ended by {name}; {_LIKELY.get(-code, 'another program may have sent it')}"


class Engine(NBClientEngine):
    """How papermill gets to our kernel: ``papermill.execute_notebook(..., engine_name=ENGINE, kernel=Kernel(...))``."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, *, kernel: Kernel, **_: Any) -> None:
        """Run the notebook in the given kernel."""
        kernel.run(nb_man)


papermill_engines.register(ENGINE, Engine)
