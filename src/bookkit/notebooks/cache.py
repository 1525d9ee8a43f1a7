"""Keep executed chapters until something changes that could change them."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import nbformat

from bookkit.notebooks.environment import DEVICES, passed
from bookkit.notebooks.execute import Run, bare
from bookkit.notebooks.facts import Facts
from bookkit.notebooks.toc import Chapter
from bookkit.project import Project, digest, files_under
from manyheads.files import write_whole

KEEP = 3  # results a chapter; enough to switch between profiles without running everything again
# the modules of this package that can change what a run gives
SHAPING = ("environment.py", "execute.py", "kernel.py", "parameters.py")


class Cache:
    """Executed chapters under ``_build/executed/<stem>/<key>.ipynb``, with their facts in ``<key>.json`` beside."""

    def __init__(self, project: Project):
        self.project = project
        self.folder = project.build / "executed"
        self._shared: list[tuple[str, bytes]] | None = None

    def key(self, chapter: Chapter, parameters: Mapping[str, str | int]) -> str:
        """Return a hash of everything that decides the result: change any of it and the chapter runs again.

        That is the notebook without its outputs, the package ``manyheads``, the recordings, the ledger of claims, the
        pinned requirements, the parameters, the versions of Python and of what ``manyheads`` needs, and which
        instructions and GPUs it may use. A chapter sees nothing else: it runs in an empty folder, in an environment
        that is the same everywhere.
        """
        if self._shared is None:
            self._shared = self._shared_parts()
        own = {"notebook": bare(chapter.read()), "parameters": dict(sorted(parameters.items()))}
        return digest([("own", json.dumps(own).encode()), *self._shared])[:32]

    def _shared_parts(self) -> list[tuple[str, bytes]]:
        root = self.project.root
        paths = [*files_under(self.project.source / "manyheads"), *files_under(root / "recordings")]
        paths += [root / name for name in ("claims.toml", "requirements.txt") if (root / name).is_file()]
        parts = [(path.relative_to(root).as_posix(), path.read_bytes()) for path in paths]
        parts += [(f"bookkit/{name}", Path(__file__).with_name(name).read_bytes()) for name in SHAPING]
        machine = {"python": platform.python_version(), **_versions(self.project), **passed(*DEVICES)}
        return [*parts, ("machine", json.dumps(machine, sort_keys=True).encode())]

    def load(self, chapter: Chapter, key: str) -> Run | None:
        """Return the stored run, or None when there is none or it is damaged; a damaged one is said to be so."""
        notebook, facts = self._paths(chapter, key)
        try:
            stored = json.loads(facts.read_text(encoding="utf-8"))
            content = notebook.read_bytes()
            if hashlib.sha256(content).hexdigest() != stored.pop("sha256"):
                raise ValueError("the notebook was changed after it was stored")
            run = Run(chapter, nbformat.reads(content.decode(), as_version=4), Facts.from_json(stored), cached=True)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            print(f"     {chapter.stem}: the stored run is damaged ({error}); executing again")
            return None
        os.utime(facts)
        return run

    def store(self, run: Run, key: str) -> None:
        """Keep a run, and drop the oldest ones of the same chapter."""
        notebook, facts = self._paths(run.chapter, key)
        content = nbformat.writes(run.nb).encode()
        write_whole(notebook, content)
        write_whole(facts, json.dumps(run.facts.to_json() | {"sha256": hashlib.sha256(content).hexdigest()}, indent=1))
        newest_first = sorted(facts.parent.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        kept = {path.stem for path in newest_first[:KEEP]}
        for path in facts.parent.iterdir():
            if path.stem not in kept:
                path.unlink()

    def _paths(self, chapter: Chapter, key: str) -> tuple[Path, Path]:
        folder = self.folder / chapter.stem
        return folder / f"{key}.ipynb", folder / f"{key}.json"


def _versions(project: Project) -> dict[str, str]:
    """The installed versions of what the package needs: one pin of torch names builds for several devices."""
    found = {}
    for name in project.requirements():
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
