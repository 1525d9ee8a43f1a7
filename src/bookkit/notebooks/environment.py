"""What a process of ours sees of this machine: the same everywhere, as far as that can be had.

The variables of the person who runs it do not pass: not the home folder with its settings, not the language, the time
zone, the width of the terminal, nor anything that starts with ``PYTHON``, ``JUPYTER``, ``MPL`` or ``JOBLIB``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from bookkit.project import Project

PLACES = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")  # where this machine keeps its programs and its scratch files
DEVICES = ("ATEN_CPU_CAPABILITY", "CUDA_VISIBLE_DEVICES")  # what computes; the last digits of a result depend on it


def passed(*names: str) -> dict[str, str]:
    """Return those of the named variables that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}


def controlled(project: Project, home: Path) -> dict[str, str]:
    """Return all the variables for a process that reads the checkout's own ``src``, with ``home`` as home folder.

    matplotlib gets a folder below ``_build`` where its list of fonts is ready.
    """
    variables = {
        **passed(*PLACES, *DEVICES),
        "HOME": str(home),
        "PYTHONPATH": str(project.source),
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",  # nothing is imported from the folder that the process starts in
        "PYTHONUTF8": "1",
        "LC_ALL": "C",
        "TZ": "UTC",
        "COLUMNS": "80",
        "LINES": "24",
    }
    return {**variables, "MPLCONFIGDIR": str(_fonts(project, variables))}


def _fonts(project: Project, variables: dict[str, str]) -> Path:
    """The folder with matplotlib's list of fonts, made once: where that takes long, matplotlib says so on stderr."""
    place = project.build / "matplotlib" / version("matplotlib")
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fonts-", dir=place.parent) as scratch:
        beside = Path(scratch) / place.name
        beside.mkdir()
        command = [sys.executable, "-c", "import matplotlib.font_manager"]
        subprocess.run(command, env=variables | {"MPLCONFIGDIR": str(beside)}, capture_output=True, check=False)
        try:
            beside.rename(place)
        except OSError:
            if not place.is_dir():  # another build may have been faster
                raise
    return place
