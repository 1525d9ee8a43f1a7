"""The checkout: where its parts lie, and what its configuration says."""

from __future__ import annotations

import hashlib
import shutil
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bookkit.errors import BookError
from bookkit.reading import read_yaml, reading

PAGES_BRANCH = "gh-pages"
Setting = TypeVar("Setting", str, list, dict)
_KINDS = {str: "text", list: "a list", dict: "keys and values"}


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

    def setting(self, *names: str, kind: type[Setting]) -> Setting:
        """Return a value of ``_config.yml``, by the names on the way to it; the empty one of its kind when left out.

        Raises
        ------
        BookError
            When the value, or one on the way to it, is of another kind.
        """
        value: Any = self.config()
        for depth, name in enumerate(names, start=1):
            value = value.get(name)
            wanted = kind if depth == len(names) else dict
            if value is None:
                return kind()
            if not isinstance(value, wanted):
                where = f"{self.root / '_config.yml'}: {'.'.join(names[:depth])}"
                raise BookError(f"{where} must be {_KINDS[wanted]}, found {value!r:.60}")
        return value

    def inside(self, name: object, source: str) -> Path:
        """Return the path of a file that ``source`` names; the book is made from what lies in the checkout."""
        if not isinstance(name, str) or Path(name).is_absolute() or ".." in Path(name).parts:
            raise BookError(f"{self.root / source} names {name!r}: it must be the name of a file in {self.root}")
        try:
            (self.root / name).exists()
        except OSError as error:  # it is too long
            raise BookError(f"{self.root / source} names {name!r:.60}: {error.strerror}") from None
        return self.root / name

    def bibliographies(self) -> list[Path]:
        """Return the BibTeX files of the book."""
        return [self.inside(name, "_config.yml") for name in self.setting("bibtex_bibfiles", kind=list)]

    def colab_base(self) -> str | None:
        """Return the address under which Colab opens the published copies, or None without a GitHub ``repository.url``.

        The copies lie on the branch that the site is published from, ``repository.branch`` (``gh-pages``).
        """
        prefix = "https://github.com/"
        url = self.setting("repository", "url", kind=str).removesuffix(".git").rstrip("/")
        if not url.startswith(prefix):
            return None
        branch = self.setting("repository", "branch", kind=str) or PAGES_BRANCH
        return f"https://colab.research.google.com/github/{url.removeprefix(prefix)}/blob/{branch}/colab/"

    def requirements(self) -> list[str]:
        """Return the names of the packages that ``manyheads`` needs, as ``pyproject.toml`` declares them."""
        path = self.root / "pyproject.toml"
        if not path.is_file():
            return []
        from packaging.requirements import Requirement

        with reading(path, "a project with a list of dependencies"):
            declared = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {}).get("dependencies", [])
            return [Requirement(line).name for line in declared]


def remove(path: Path) -> None:
    """Remove a folder, a file or a link (not what it leads to); what is not there is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


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
