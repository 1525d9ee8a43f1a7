"""Judging: a measurement becomes a verdict, and the verdict a card that readers see and the build counts."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any

from manyheads.names import unknown
from manyheads.reporting.claims.ledger import Claim, ledger
from manyheads.reporting.claims.rules import EXACT, MARKS
from manyheads.reporting.formulas import to_html
from manyheads.reporting.numbers import number

MIME = "application/vnd.manyheads.verdict+json"


def anchor(id: str) -> str:
    """The HTML id of a claim's card, which the scoreboard links to."""
    return f"verdict-{id.lower()}"


@dataclass(frozen=True)
class Verdict:
    """A judged claim. Show it as the last line of a cell: the build reads the card."""

    claim: Claim
    verdict: str
    estimate: float
    interval: tuple[float, float] | None = None
    n_seeds: int | None = None
    unit: str = ""
    evidence: str = ""
    device: str = "cpu"

    @property
    def measured(self) -> str:
        """The estimate in words, to three digits, and rounding as such: more would differ between platforms."""
        text = number(self.estimate)
        if self.verdict == EXACT and self.estimate:
            text = f"0 up to rounding (below {number(self.claim.rule.tolerance)})"
        if self.interval is not None:
            text += f" [{', '.join(map(number, self.interval))}]"
        if self.unit:
            text += f" {self.unit}"
        return text + (f", {self.n_seeds} seeds" if self.n_seeds else "")

    def to_json(self) -> dict[str, Any]:
        """What the scoreboard keeps of the verdict."""
        return {
            "id": self.claim.id,
            "chapter": self.claim.chapter,
            "verdict": self.verdict,
            "measured": self.measured,
            "evidence": self.evidence,
            "device": self.device,
        }

    def __str__(self) -> str:
        return f"{self.claim.id}: {self.verdict} ({self.measured})"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        claim = self.claim
        rows = [
            ("Claim", claim.statement),
            ("Source", claim.source),
            ("Reported", claim.reported),
            ("We measured", f"{claim.measure}: {self.measured}"),
            ("Evidence", self.evidence),
            ("Rule", claim.rule.in_words()),
        ]
        body = "".join(f"<dt>{name}</dt><dd>{to_html(text)}</dd>" for name, text in rows if text)
        slug = self.verdict.replace(" ", "-")
        card = (
            f'<section class="verdict verdict-{slug}" id="{anchor(claim.id)}" aria-label="Verdict on claim {claim.id}">'
            f'<p class="verdict-head"><strong>{claim.id}</strong> <span class="verdict-mark">'
            f'<span aria-hidden="true">{MARKS[self.verdict]}</span> {self.verdict}</span></p><dl>{body}</dl></section>'
        )
        return {"text/plain": str(self), "text/html": card, MIME: self.to_json()}


@dataclass(frozen=True)
class Table:
    """The closing table of a chapter: claim, paper, measured, verdict."""

    verdicts: tuple[Verdict, ...] = field(default_factory=tuple)

    def __str__(self) -> str:
        return "\n".join(map(str, self.verdicts))

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        head = "".join(f'<th scope="col">{name}</th>' for name in ("Claim", "Paper", "Measured", "Verdict"))
        rows = "".join(
            f'<tr><th scope="row">{v.claim.id}</th><td>{to_html(v.claim.reported)}</td>'
            f"<td>{html.escape(v.measured)}</td><td>{MARKS[v.verdict]} {v.verdict}</td></tr>"
            for v in self.verdicts
        )
        table = f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        return {"text/plain": str(self), "text/html": table}


def judge(
    id: str,
    *,
    estimate: float,
    interval: Sequence[float] | None = None,
    n_seeds: int | None = None,
    unit: str = "",
    evidence: str = "",
    device: str = "cpu",
) -> Verdict:
    """Compare a measurement with the ledger and return the verdict its rule gives.

    Parameters
    ----------
    id
        A claim of ``claims.toml``; write it as a literal, so that the build can see it.
    estimate
        The number that the claim's ``measure`` asks for.
    interval
        Its 95% interval ``(low, high)``; leave out for a deterministic quantity.
    n_seeds
        Independent seeds behind the interval.
    unit, evidence
        Words for the card: the unit of the estimate, and what was run to get it. The evidence may hold formulas, in
        TeX between dollar signs.
    device
        Where it ran, as torch names it: ``"cpu"``, ``"cuda:0"``.

    Raises
    ------
    ValueError
        For an unknown id, an estimate or an end of the interval that is not a finite number, an interval that is not
        ordered around the estimate, a negative deviation, a share outside [0, 1], a number of seeds that is not a
        whole number of at least 1, words that are not a text, and a device that torch would not name so.
    """
    claims = ledger()
    if id not in list(claims):
        raise ValueError(unknown("claim id", id, claims))
    try:
        return _judge(claims[id], estimate, interval, n_seeds, unit, evidence, device)
    except ValueError as error:
        raise ValueError(f"{id}: {error}") from None


def _judge(claim, estimate, interval, n_seeds, unit, evidence, device) -> Verdict:
    rule = claim.rule
    estimate = _finite("estimate", estimate)
    if rule.kind == "exact" and estimate < 0:
        raise ValueError(f"estimate={estimate} is a deviation, so it cannot be negative: take the absolute value")
    if rule.kind == "share" and not 0 <= estimate <= 1:
        raise ValueError(f"estimate={estimate} is a share, so it lies between 0 and 1")
    if interval is not None:
        interval = _interval(interval, estimate)
    elif rule.kind == "region" and rule.min_seeds:
        raise ValueError("the rule asks for a 95% interval; statistics.student(values).interval gives one")
    if n_seeds is not None:
        n_seeds = _seeds(n_seeds)
    for name, text in (("unit", unit), ("evidence", evidence)):
        if not isinstance(text, str):
            raise ValueError(f"{name}={text!r} must be a text")
        to_html(text)
    if not isinstance(device, str) or not re.fullmatch(r"[a-z]+(:\d+)?", device):
        raise ValueError(f'device={device!r} must be a text such as "cpu" or "cuda:0"')
    verdict = rule.verdict(estimate, interval or (estimate, estimate), n_seeds, device)
    return Verdict(claim, verdict, estimate, interval, n_seeds, unit, evidence, device)


def _finite(name: str, value: Any) -> float:
    try:
        found = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # torch's own for what is not one number
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{name}={value!r} is not a finite number")
    return found


def _interval(interval: Any, estimate: float) -> tuple[float, float]:
    try:
        ends = tuple(interval)
    except TypeError:
        ends = ()
    if len(ends) != 2:
        raise ValueError(f"interval={interval!r} must be a pair (low, high) around estimate={estimate}")
    low, high = (_finite(f"interval[{i}]", end) for i, end in enumerate(ends))
    if not low <= estimate <= high:
        raise ValueError(f"interval=({low}, {high}) must be (low, high) around estimate={estimate}")
    return low, high


def _seeds(n_seeds: Any) -> int:
    try:
        found = 0 if isinstance(n_seeds, bool) else index(n_seeds)
    except TypeError:
        found = 0
    if found < 1:
        raise ValueError(f"n_seeds={n_seeds!r} must be a whole number of at least 1, or left out")
    return found
