"""The bibliography in plain words, for copies of chapters that have no Sphinx to format it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bookkit.errors import BookError
from bookkit.reading import reading

if TYPE_CHECKING:
    from pybtex.database import Entry

ADDRESSES = {"url": "", "doi": "https://doi.org/", "eprint": "https://arxiv.org/abs/"}
VENUES = ("journal", "booktitle", "publisher", "howpublished")


@dataclass(frozen=True)
class Citation:
    """A cited work: its authors as they are named in running text, its year, and its full reference."""

    authors: str
    year: str
    reference: str


def read(paths: Iterable[Path]) -> dict[str, Citation]:
    """Return the works of BibTeX files by their keys.

    Raises
    ------
    BookError
        When a file is missing or is not BibTeX.
    """
    from pybtex.database import parse_string

    works: dict[str, Citation] = {}
    for path in paths:
        if not path.is_file():
            raise BookError(f"the bibliography {path} named in _config.yml does not exist")
        with reading(path, "valid BibTeX"):
            entries = parse_string(path.read_text(encoding="utf-8"), bib_format="bibtex").entries
            works |= {key: _citation(entry) for key, entry in entries.items()}
    return works


def _citation(entry: Entry) -> Citation:
    people = entry.persons.get("author") or entry.persons.get("editor") or []
    last = [_plain(" ".join([*person.prelast_names, *person.last_names])) for person in people]
    first = [_plain(" ".join([*person.first_names, *person.middle_names])) for person in people]
    fields = {name: value if name in ADDRESSES else _plain(value) for name, value in entry.fields.items()}
    title, year = fields.get("title", "Untitled"), fields.get("year", "n.d.")
    short = f"{last[0]} et al." if len(last) > 2 else " and ".join(last) or title
    everyone = ", ".join(" ".join(name).strip() for name in zip(first, last, strict=True))
    venue = next((fields[name] for name in VENUES if name in fields), "")
    return Citation(short, year, ". ".join(filter(None, [everyone, f"*{title}*", venue, year, _address(fields)])))


def _address(fields: dict[str, str]) -> str:
    return next((prefix + fields[name].replace("\\", "") for name, prefix in ADDRESSES.items() if name in fields), "")


def _plain(value: str) -> str:
    """Drop the braces that protect capitals, decode accents, and join lines."""
    from pybtex.richtext import Text

    return " ".join(str(Text.from_latex(value)).split())
