"""The claims of ``claims.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any

from manyheads.reporting.claims.conditions import Condition, check_text
from manyheads.reporting.claims.rules import Change, Rule
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
            check_text(name, text)
            if not text.strip():
                raise ValueError(f"{name}={text!r} must be a text")
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
            claims[id] = _make(Claim, {"id": id, **entry, "rule": _rule(entry.get("rule"))})
        except ValueError as error:
            raise ValueError(f"claims.toml, [{id}]: {error}") from None
    return claims


def _rule(table: Any) -> Rule:
    table = dict(_table("rule", table))
    if "conditions" in table:
        conditions = _table("conditions", table["conditions"])
        table["conditions"] = {name: _make(Condition, condition) for name, condition in conditions.items()}
    if "controls" in table:
        _table("controls", table["controls"])
    if "history" in table:
        if not isinstance(table["history"], list):
            raise ValueError(f"history={table['history']!r} must be a list of tables")
        table["history"] = tuple(_make(Change, change) for change in table["history"])
    return _make(Rule, table)


def _make(kind: type, table: Any) -> Any:
    """Make a ``kind`` of a table; refuse fields that it does not have, and the lack of one that it needs."""
    given = set(_table(kind.__name__.lower(), table))
    known = {field.name for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is field.default_factory is MISSING}
    if given - known or needed - given:
        raise ValueError(f"fields are {sorted(given)}, expected {sorted(needed)} and perhaps {sorted(known - needed)}")
    return kind(**table)


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}={value!r} must be a table")
    return value
