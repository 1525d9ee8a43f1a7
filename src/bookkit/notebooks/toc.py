"""The chapters of the book, in the order of ``_toc.yml``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from sphinx_external_toc.parsing import parse_toc_data

from bookkit.errors import BookError
from bookkit.project import Project
from bookkit.reading import read_notebook, read_yaml, reading
from manyheads.names import unknown


@dataclass(frozen=True)
class Chapter:
    """One notebook of the book. Its number is the one that its file name starts with."""

    number: int
    stem: str
    path: Path
    title: str

    def __str__(self) -> str:
        return f"chapter {self.number} ({self.stem})"

    def read(self) -> nbformat.NotebookNode:
        """Read the notebook as it is in the checkout."""
        return read_notebook(self.path)


def entries(project: Project) -> list[str]:
    """Return the files named in ``_toc.yml``, in order and as they are written there.

    Raises
    ------
    BookError
        When Sphinx could not read the file, or an entry lies outside the checkout.
    """
    path = project.root / "_toc.yml"
    toc = read_yaml(path)
    with reading(path, "a table of contents"):
        named = list(parse_toc_data(toc))
    for entry in named:
        project.inside(entry, "_toc.yml")
    return named


def chapters(project: Project) -> list[Chapter]:
    """Return the chapters named in ``_toc.yml``: entries whose file name starts with a number.

    Raises
    ------
    BookError
        When ``_toc.yml`` cannot be used, a chapter has no notebook or no first heading, or two chapters share a number.
    """
    found: dict[int, Chapter] = {}
    for entry in entries(project):
        stem = Path(entry).name.removesuffix(".ipynb")
        number = re.match(r"(\d+)[_-]", stem)
        if not number:
            continue
        path = project.root / Path(entry).parent / f"{stem}.ipynb"
        if not path.is_file():
            raise BookError(f"_toc.yml names {entry}, but {path.relative_to(project.root)} does not exist")
        chapter = Chapter(int(number[1]), stem, path, _title(path))
        if chapter.number in found:
            raise BookError(f"_toc.yml names two chapters {chapter.number}: {found[chapter.number].stem} and {stem}")
        found[chapter.number] = chapter
    return list(found.values())


def select(all_chapters: Sequence[Chapter], wanted: Sequence[str]) -> list[Chapter]:
    """Return the chapters named by number or stem, in book order; all of them when nothing is named."""
    names = {name: chapter for chapter in all_chapters for name in (str(chapter.number), chapter.stem)}
    for name in wanted:
        if name not in names:
            raise BookError(unknown("chapter", name, names))
    chosen = {names[name] for name in wanted}
    return [chapter for chapter in all_chapters if chapter in chosen or not wanted]


def _title(path: Path) -> str:
    for cell in read_notebook(path).cells:
        heading = re.search(r"^# +(.+?) *#*$", cell.source, flags=re.M) if cell.cell_type == "markdown" else None
        if heading:
            return heading[1]
    raise BookError(f"{path.name} has no title: start it with a Markdown cell '# Title'")
