"""The checkout: where its parts lie, and what its configuration says."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bookkit.errors import BookError

PAGES_BRANCH = "gh-pages"


@dataclass(frozen=True)
class Project:
    """A checkout with its root folder; the properties name the places that the other modules read and write."""

    root: Path

    @classmethod
    def find(cls, start: str | Path | None = None) -> Project:
        """Return the checkout that contains ``start`` (the current folder when left out).

        Raises
        ------
        BookError
            When neither ``start`` nor a folder above it holds both ``_config.yml`` and ``_toc.yml``.
        """
        start = Path(start or ".").resolve()
        for folder in (start, *start.parents):
            if (folder / "_config.yml").is_file() and (folder / "_toc.yml").is_file():
                return cls(folder)
        raise BookError(
            f"no book in {start} or above it: a book has _config.yml and _toc.yml at its root. "
            "Go into the checkout, or name it with --root"
        )

    @property
    def book(self) -> Path:
        """The folder of pages and notebooks."""
        return self.root / "book"

    @property
    def build(self) -> Path:
        """The folder of everything that can be made again."""
        return self.root / "_build"

    @property
    def html(self) -> Path:
        """The finished site."""
        return self.build / "html"

    @property
    def vendor(self) -> Path:
        """The browser scripts that were fetched."""
        return self.build / "vendor"

    @property
    def source(self) -> Path:
        """The folder that goes on ``sys.path`` when a chapter runs."""
        return self.root / "src"

    def config(self) -> dict[str, Any]:
        """Return ``_config.yml``."""
        return read_yaml(self.root / "_config.yml")

    def colab_base(self) -> str | None:
        """Return the address under which Colab opens the published copies, or None without a GitHub ``repository.url``.

        The copies lie on the branch that the site is published from, ``repository.branch`` (``gh-pages``).
        """
        repository = self.config().get("repository") or {}
        prefix, url = "https://github.com/", str(repository.get("url") or "").removesuffix(".git").rstrip("/")
        if not url.startswith(prefix):
            return None
        branch = repository.get("branch", PAGES_BRANCH)
        return f"https://colab.research.google.com/github/{url.removeprefix(prefix)}/blob/{branch}/colab/"

    def requirements(self) -> list[str]:
        """Return the names of the packages that ``manyheads`` needs, as ``pyproject.toml`` declares them."""
        path = self.root / "pyproject.toml"
        if not path.is_file():
            return []
        from packaging.requirements import Requirement

        declared = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {}).get("dependencies", [])
        return [Requirement(line).name for line in declared]


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping; a :class:`BookError` says which line is wrong."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise BookError(f"{path.name} is not valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise BookError(f"{path.name} must hold keys and values, found {type(content).__name__}")
    return content


def files_under(folder: Path) -> list[Path]:
    """Return the files below ``folder`` in order, without caches and hidden ones; an absent folder has none."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(
            part.startswith(".") or part == "__pycache__" or part.endswith(".egg-info")
            for part in path.relative_to(folder).parts
        )
    )


def digest(parts: Iterable[tuple[str, bytes]]) -> str:
    """Return a SHA-256 over named contents; names and lengths are hashed too, so that nothing can slide over."""
    total = hashlib.sha256()
    for name, content in parts:
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()
