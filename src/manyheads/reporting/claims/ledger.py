"""The claims of ``claims.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache

from manyheads.reporting.claims.rules import Rule
from manyheads.reporting.formulas import to_html
from manyheads.reporting.paths import data_root


@dataclass(frozen=True)
class Claim:
    """One entry of the ledger. Its texts may hold formulas, in TeX between dollar signs.

    Raises
    ------
    ValueError
        For a text that is empty, not a text, or holds TeX that cards cannot show, and for a chapter below 1.
    """

    id: str
    statement: str
    source: str
    reported: str
    chapter: int
    measure: str
    rule: Rule

    def __post_init__(self):
        for name in ("statement", "source", "reported", "measure"):
            text = getattr(self, name)
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"{name}={text!r} must be a text")
            to_html(text)
        if not isinstance(self.chapter, int) or self.chapter < 1:
            raise ValueError(f"chapter={self.chapter!r} must be a whole number of at least 1")


@cache
def ledger() -> Mapping[str, Claim]:
    """Return every claim by id, in the order of ``claims.toml``.

    Raises
    ------
    ValueError
        When an entry lacks a field, has one too many, or one that :class:`Claim` or :class:`Rule` refuses.
    """
    return read_ledger((data_root() / "claims.toml").read_text(encoding="utf-8"))


def read_ledger(text: str) -> dict[str, Claim]:
    """Parse a ledger; :func:`ledger` reads the book's own."""
    claims = {}
    for id, entry in tomllib.loads(text).items():
        try:
            _only(entry, Claim, {"id"}, required=True)
            _only(entry["rule"], Rule)
            claims[id] = Claim(id, **{**entry, "rule": Rule(**entry["rule"])})
        except ValueError as error:
            raise ValueError(f"claims.toml, [{id}]: {error}") from None
    return claims


def _only(table: Mapping[str, object], kind: type, ours: set[str] = frozenset(), required: bool = False) -> None:
    """Refuse fields that ``kind`` does not have, and with ``required`` the lack of one."""
    known = {field.name for field in fields(kind)} - ours
    if set(table) - known or (required and known - set(table)):
        raise ValueError(f"fields are {sorted(table)}, expected {sorted(known)}")
