"""The ledger of claims, the rules that judge them, and the scoreboard.

A chapter measures and calls :func:`judge` with the id as a literal. The verdict comes from the rule in ``claims.toml``;
an author cannot pass one. The build counts the cards: every claim of a chapter in the book is judged exactly once.
"""

from __future__ import annotations

import html
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from manyheads.names import unknown
from manyheads.reporting.paths import data_root

MIME = "application/vnd.manyheads.verdict+json"
EXACT, HOLDS, PARTLY, NOT_HERE, MORE_COMPUTE = (
    "exact",
    "holds",
    "partly",
    "not reproduced here",
    "needs more compute",
)
VERDICTS = (EXACT, HOLDS, PARTLY, NOT_HERE, MORE_COMPUTE)
MARKS = {EXACT: "✔✔", HOLDS: "✔", PARTLY: "◐", NOT_HERE: "✘", MORE_COMPUTE: "…"}
RULES = {"exact": {"tolerance"}, "region": {"low", "high", "min_seeds"}, "share": set()}


@dataclass(frozen=True)
class Rule:
    """How an estimate becomes a verdict; see the head of ``claims.toml`` for the kinds."""

    kind: str
    tolerance: float | None = None
    low: float = -math.inf
    high: float = math.inf
    min_seeds: int = 0
    needs: str | None = None
    illustrates: bool = False

    def in_words(self) -> str:
        """The rule as a sentence for readers."""
        if self.illustrates:
            plain = replace(self, illustrates=False).in_words()
            return plain.replace("holds when", "partly when") + "; an experiment cannot show more of this theorem"
        if self.kind == "exact":
            return "exact when the largest deviation is " + (
                "0" if not self.tolerance else f"at most {self.tolerance:g}"
            )
        if self.kind == "share":
            return "holds when every listed condition is met"
        sides = [f"above {self.low:g}"] * (self.low > -math.inf) + [f"below {self.high:g}"] * (self.high < math.inf)
        seeds = f", from at least {self.min_seeds} seeds" if self.min_seeds else ""
        device = f"; needs {self.needs}" if self.needs else ""
        return f"holds when the whole interval lies {' and '.join(sides)}{seeds}{device}"

    def verdict(self, estimate: float, interval: tuple[float, float], n_seeds: int | None, device: str) -> str:
        """Apply the rule. Evidence too thin for the rule gives ``needs more compute``, whatever the estimate."""
        if self.illustrates:
            verdict = replace(self, illustrates=False).verdict(estimate, interval, n_seeds, device)
            return PARTLY if verdict == HOLDS else verdict
        if self.needs and not device.startswith(self.needs):
            return MORE_COMPUTE
        if self.kind == "exact":
            return EXACT if estimate <= self.tolerance else NOT_HERE
        if self.kind == "share":
            return HOLDS if estimate == 1 else NOT_HERE if estimate == 0 else PARTLY
        if (n_seeds or 0) < self.min_seeds:
            return MORE_COMPUTE
        low, high = interval
        if self.low <= low and high <= self.high:
            return HOLDS
        return PARTLY if low < self.high and high > self.low else NOT_HERE


@dataclass(frozen=True)
class Claim:
    """One entry of the ledger."""

    id: str
    statement: str
    source: str
    reported: str
    chapter: int
    measure: str
    rule: Rule


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
        text = f"{self.estimate:.3g}"
        if self.verdict == EXACT and self.estimate:
            text = f"0 up to rounding (below {self.claim.rule.tolerance:g})"
        if self.interval is not None:
            text += f" [{self.interval[0]:.3g}, {self.interval[1]:.3g}]"
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
        body = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in rows if text)
        slug = self.verdict.replace(" ", "-")
        card = (
            f'<section class="verdict verdict-{slug}" aria-label="Verdict on claim {claim.id}">'
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
            f'<tr><th scope="row">{v.claim.id}</th><td>{html.escape(v.claim.reported)}</td>'
            f"<td>{html.escape(v.measured)}</td><td>{MARKS[v.verdict]} {v.verdict}</td></tr>"
            for v in self.verdicts
        )
        table = f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        return {"text/plain": str(self), "text/html": table}


@cache
def ledger() -> Mapping[str, Claim]:
    """Return every claim by id, in the order of ``claims.toml``.

    Raises
    ------
    ValueError
        When an entry lacks a field, has one too many, or its rule is not one of ``exact``, ``region``, ``share``.
    """
    return read_ledger((data_root() / "claims.toml").read_text(encoding="utf-8"))


def read_ledger(text: str) -> dict[str, Claim]:
    """Parse a ledger; :func:`ledger` reads the book's own."""
    fields = {"statement", "source", "reported", "chapter", "measure", "rule"}
    claims = {}
    for id, entry in tomllib.loads(text).items():
        if set(entry) != fields:
            raise ValueError(f"claims.toml, [{id}]: fields are {sorted(entry)}, expected {sorted(fields)}")
        rule = entry["rule"]
        kind = rule.get("kind")
        if kind not in RULES:
            raise ValueError(f"claims.toml, [{id}]: {unknown('rule kind', kind, RULES)}")
        extra = set(rule) - RULES[kind] - {"kind", "needs", "illustrates"}
        if (
            extra
            or (kind == "exact" and "tolerance" not in rule)
            or (kind == "region" and not {"low", "high"} & set(rule))
        ):
            raise ValueError(
                f"claims.toml, [{id}]: a rule of kind {kind!r} takes {sorted(RULES[kind])}, got {sorted(rule)}"
            )
        claims[id] = Claim(id, **{**entry, "rule": Rule(**rule)})
    return claims


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
        Words for the card: the unit of the estimate, and what was run to get it.
    device
        Where it ran, as torch names it: ``"cpu"``, ``"cuda:0"``.

    Raises
    ------
    ValueError
        For an unknown id, an estimate that is not finite, an interval that is not ordered around the estimate,
        a negative deviation, or a share outside [0, 1].
    """
    claims = ledger()
    if id not in claims:
        raise ValueError(unknown("claim id", id, claims))
    rule = claims[id].rule
    estimate = float(estimate)
    if not math.isfinite(estimate):
        raise ValueError(f"{id}: estimate={estimate} is not a finite number")
    if rule.kind == "exact" and estimate < 0:
        raise ValueError(f"{id}: estimate={estimate} is a deviation, so it cannot be negative: take the absolute value")
    if rule.kind == "share" and not 0 <= estimate <= 1:
        raise ValueError(f"{id}: estimate={estimate} is a share, so it lies between 0 and 1")
    if interval is not None:
        interval = tuple(float(end) for end in interval)
        if len(interval) != 2 or not interval[0] <= estimate <= interval[1]:
            raise ValueError(f"{id}: interval={interval} must be (low, high) around estimate={estimate}")
    if rule.kind == "region" and rule.min_seeds and interval is None:
        raise ValueError(f"{id}: the rule asks for a 95% interval; statistics.student(values).interval gives one")
    verdict = rule.verdict(estimate, interval or (estimate, estimate), n_seeds, device)
    return Verdict(claims[id], verdict, estimate, interval, n_seeds, unit, evidence, device)


def check(verdicts: Iterable[Mapping[str, Any]], chapters: Iterable[int]) -> list[str]:
    """Return what is wrong with the cards found in the book; an empty list when all is well.

    Every claim whose chapter is in ``chapters`` must have exactly one card, in its own chapter.
    """
    chapters, verdicts, claims = set(chapters), list(verdicts), ledger()
    counts = Counter(v["id"] for v in verdicts)
    problems = [unknown("claim id", id, claims) for id in counts if id not in claims]
    for id, claim in claims.items():
        if counts[id] > 1:
            problems.append(f"{id} is judged {counts[id]} times; keep one card")
        if claim.chapter in chapters and not counts[id]:
            problems.append(f"{id} belongs to chapter {claim.chapter} and has no verdict card there: {claim.measure}")
    for v in verdicts:
        if v["id"] in claims and v.get("found_in", claims[v["id"]].chapter) != claims[v["id"]].chapter:
            problems.append(
                f"{v['id']} belongs to chapter {claims[v['id']].chapter}, judged in chapter {v['found_in']}"
            )
    return problems


def scoreboard(verdicts: Iterable[Mapping[str, Any]], chapters: Iterable[int]) -> str:
    """Return the scoreboard page as Markdown: what is judged so far, and what is still to come.

    Parameters
    ----------
    verdicts
        The JSON of the cards found in the executed chapters, one mapping a card.
    chapters
        Numbers of the chapters that are in the book.
    """
    chapters, found = set(chapters), {v["id"]: v for v in verdicts}
    tally = Counter(v["verdict"] for v in found.values())
    lines = [
        "# Scoreboard",
        "",
        "Which claims of the papers did we check, and what came out? This page is generated from the verdict cards of",
        "the executed chapters. A rule, fixed beside the claim, turns each estimate and",
        "interval into a verdict; nobody types one in. " + f"{len(found)} of {len(ledger())} claims are judged so far.",
        "",
        "| Verdict | Meaning | Claims |",
        "|---|---|---|",
        f"| {MARKS[EXACT]} {EXACT} | proved, and checked to rounding | {tally[EXACT]} |",
        f"| {MARKS[HOLDS]} {HOLDS} | the whole 95% interval is on the claimed side | {tally[HOLDS]} |",
        f"| {MARKS[PARTLY]} {PARTLY} | some of it, or the interval straddles the line | {tally[PARTLY]} |",
        f"| {MARKS[NOT_HERE]} {NOT_HERE} | we tried, and it came out otherwise | {tally[NOT_HERE]} |",
        f"| {MARKS[MORE_COMPUTE]} {MORE_COMPUTE} | too few seeds, or no such device here | {tally[MORE_COMPUTE]} |",
        "",
    ]
    claims = ledger().values()
    for title, group in (
        ("Judged", [c for c in claims if c.chapter in chapters]),
        ("Still to come", [c for c in claims if c.chapter not in chapters]),
    ):
        if not group:
            continue
        judged = title == "Judged"
        columns = ["Id", "Claim", "What is measured, and the rule", *(["Verdict"] if judged else ["Chapter"])]
        lines += [f"## {title}", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        for c in group:
            row = [c.id, f"{c.statement} *{c.source}: {c.reported}.*", f"{c.measure}; *{c.rule.in_words()}*"]
            if not judged:
                row.append(str(c.chapter))
            elif v := found.get(c.id):
                row.append(f"**{MARKS[v['verdict']]} {v['verdict']}**: {v['measured']} (chapter {c.chapter})")
            else:
                row.append(f"not judged (chapter {c.chapter})")
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
        lines.append("")
    return "\n".join(lines)
