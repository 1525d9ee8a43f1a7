"""Build the pages with Sphinx: whole and without a warning, or not at all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bookkit.errors import BookError, SiteError
from bookkit.notebooks.environment import controlled
from bookkit.project import Project, digest, files_under, remove
from manyheads.files import write_whole

FINGERPRINT = ".fingerprint"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_WARNING = re.compile(r"\b(WARNING|ERROR|CRITICAL)\b")
_TAIL = 15


def publish(project: Project, staged: Mapping[str, bytes], extra: Mapping[str, bytes]) -> bool:
    """Build the site from the staged files and put it at ``_build/html``; return False when it is there already.

    Every build starts from nothing: Sphinx does not repeat the warnings of pages that it has read before, and leaves
    the navigation of unchanged pages as it was. The old site stays until the new one is complete.

    Parameters
    ----------
    project
        The checkout.
    staged
        What Sphinx reads, from :func:`bookkit.site.stage.files`.
    extra
        What is published beside the pages, such as the Colab copies.

    Raises
    ------
    SiteError
        For any warning; the message lists them.
    """
    fingerprint = _fingerprint(project, staged, extra)
    try:
        if (project.html / FINGERPRINT).read_bytes() == fingerprint.encode():
            return False
    except OSError:
        pass
    stage = project.build / "stage"
    remove(stage)
    for name, content in staged.items():
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        (stage / name).write_bytes(content)
    with tempfile.TemporaryDirectory(prefix=".site-", dir=project.build) as scratch:
        html = _sphinx(project, stage, Path(scratch))
        for name, content in {**extra, FINGERPRINT: fingerprint.encode()}.items():
            write_whole(html / name, content)
        if project.html.exists():
            project.html.rename(Path(scratch) / "before")
        html.rename(project.html)
    return True


def check_place(project: Project) -> None:
    """Refuse a place for the site that a build could not use, before anything is executed.

    Raises
    ------
    BookError
        When ``_build`` is no folder, or ``_build/html`` is none or a link: its target would keep the old site.
    """
    for place in (project.build, project.html):
        if place.exists() and not place.is_dir():
            raise BookError(f"{place} is a file, and the site needs a folder there: remove it")
    if project.html.is_symlink():
        raise BookError(f"{project.html} is a link, and every build puts a new folder there: remove it")


def _fingerprint(project: Project, staged: Mapping[str, bytes], extra: Mapping[str, bytes]) -> str:
    """A hash of all that the pages show: the API page is made from the sources, by the pinned tools."""
    sources = [*files_under(project.source), project.root / "requirements.txt"]
    named = {str(path.relative_to(project.root)): path.read_bytes() for path in sources if path.is_file()}
    parts = {**named, **{f"stage/{k}": v for k, v in staged.items()}, **{f"extra/{k}": v for k, v in extra.items()}}
    return digest([("python", sys.version.encode()), *sorted(parts.items())])


def _sphinx(project: Project, stage: Path, output: Path) -> Path:
    """Run Jupyter Book in a process of its own and return the folder of pages."""
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(stage)]
    home = output / "home"
    home.mkdir()
    done = subprocess.run(
        [*command, "--path-output", str(output), "-W", "-n", "--keep-going"],
        cwd=project.root,
        env=controlled(project, home),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    html = output / "_build" / "html"
    if done.returncode or not (html / "index.html").is_file():
        raise SiteError(_report(done.stdout, stage))
    return html


def _report(log: str, stage: Path) -> str:
    """The warnings, each once, with paths as they are in the checkout; the end of the log when there are none."""
    lines = [_ANSI.sub("", line).replace(f"{stage}{os.sep}", "").rstrip() for line in log.splitlines()]
    lines = [line for line in lines if line and "build finished with problems" not in line]
    warnings = list(dict.fromkeys(line for line in lines if _WARNING.search(line)))
    if any(line.startswith("Traceback") for line in lines):
        warnings = []  # Sphinx itself stopped: what it said last matters
    count = f"{len(warnings)} warning{'s' if len(warnings) != 1 else ''}" if warnings else "an error"
    shown = "\n".join(f"  {line}" for line in warnings or lines[-_TAIL:])
    return f"the site was not built, Sphinx found {count}:\n{shown}"
