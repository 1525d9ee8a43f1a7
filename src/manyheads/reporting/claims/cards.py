"""Verdicts as cards that readers see and the build counts, and as the closing table of a chapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from manyheads.reporting.claims.conditions import Measured
from manyheads.reporting.claims.ledger import Claim
from manyheads.reporting.claims.rules import ONLY, Rule, seeds_behind
from manyheads.reporting.claims.verdicts import EXACT, MARKS, MET
from manyheads.reporting.formulas import to_html
from manyheads.reporting.numbers import number

MIME = "application/vnd.manyheads.verdict+json"
YOUNGER = "rule changed after the recording"


def anchor(id: str) -> str:
    """The HTML id of a claim's card, which the scoreboard links to."""
    return f"verdict-{id.lower()}"


@dataclass(frozen=True)
class Verdict:
    """A judged claim. Show it as the last line of a cell: the build reads the card."""

    claim: Claim
    verdict: str
    values: Mapping[str, Measured]
    unit: str = ""
    evidence: str = ""
    device: str = "cpu"
    recorded: str = ""

    @property
    def outcomes(self) -> dict[str, str]:
        """What became of every condition; empty for a rule that lists none."""
        rule = self.claim.rule
        return dict(zip(rule.lines, rule.outcomes(self.values), strict=True)) if rule.conditions else {}

    @property
    def measured(self) -> str:
        """In words: the estimate, and rounding as such; of conditions, how many are met."""
        if self.outcomes:
            met = list(self.outcomes.values()).count(MET)
            text = f"{met} of {len(self.outcomes)} conditions met"
        elif self.verdict == EXACT and self.values[ONLY].value:
            text = f"0 up to rounding (below {number(self.claim.rule.tolerance or 0)})"
        else:
            text = str(self.values[ONLY])
        n_seeds = seeds_behind(self.values)
        return text + (f" {self.unit}" if self.unit else "") + (f", {n_seeds} seeds" if n_seeds else "")

    @property
    def note(self) -> str:
        """What a reader must know who trusts the order of rule and measurement: the rule is the younger one."""
        younger = self.recorded and date.fromisoformat(self.recorded) < self.claim.rule.since
        return YOUNGER if younger else ""

    def to_json(self) -> dict[str, Any]:
        """What the scoreboard keeps of the verdict."""
        return {
            "id": self.claim.id,
            "chapter": self.claim.chapter,
            "verdict": self.verdict,
            "measured": self.measured,
            "conditions": [
                {"name": name, "measured": str(self.values[name]), "outcome": outcome}
                for name, outcome in self.outcomes.items()
            ],
            "evidence": self.evidence,
            "device": self.device,
            "recorded": self.recorded,
            "note": self.note,
        }

    def __str__(self) -> str:
        each = ", ".join(f"{name} {outcome}" for name, outcome in self.outcomes.items())
        return f"{self.claim.id}: {self.verdict} ({self.measured}{'; ' + each if each else ''})"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        claim = self.claim
        rows = [
            ("Claim", to_html(claim.statement)),
            ("Source", to_html(claim.source)),
            ("Reported", to_html(claim.reported)),
            ("We measured", self._measured_html()),
            ("Evidence", to_html(self.evidence)),
            ("Note", to_html(self.note)),
            ("Rule", _rule_html(claim.rule)),
        ]
        body = "".join(f"<dt>{name}</dt><dd>{content}</dd>" for name, content in rows if content)
        slug = self.verdict.replace(" ", "-")
        card = (
            f'<section class="verdict verdict-{slug}" id="{anchor(claim.id)}" aria-label="Verdict on claim {claim.id}">'
            f'<p class="verdict-head"><strong>{claim.id}</strong> <span class="verdict-mark">'
            f'<span aria-hidden="true">{MARKS[self.verdict]}</span> {self.verdict}</span></p><dl>{body}</dl></section>'
        )
        return {"text/plain": str(self), "text/html": card, MIME: self.to_json()}

    def _measured_html(self) -> str:
        text = to_html(f"{self.claim.measure}: {self.measured}")
        rule = self.claim.rule
        items = [
            f"<li><strong>{name}</strong>, {to_html(rule.lines[name].text)}: {to_html(str(self.values[name]))}; "
            f"{condition_in_words(rule, name)}: <strong>{outcome}</strong></li>"
            for name, outcome in self.outcomes.items()
        ]
        return text + (f"<ul>{''.join(items)}</ul>" if items else "")


def condition_in_words(rule: Rule, name: str) -> str:
    """Return the line that a condition must keep, as ``must be above 3``; for a fact, ``must be true``."""
    condition = rule.lines[name]
    return f"must be {condition.region_in_words(interval=bool(rule.min_seeds))}"


def _rule_html(rule: Rule) -> str:
    lines = "".join(f"<li>{to_html(line)}</li>" for line in rule_notes(rule))
    return f"{to_html(rule.in_words())}<details><summary>{summary(rule)}</summary><ul>{lines}</ul></details>"


def summary(rule: Rule) -> str:
    """Return the line that stands for the folded part of a rule."""
    n = len(rule.history)
    earlier = f"; {n} earlier version{'s' if n > 1 else ''}" if n else ""
    return f"Rule of {rule.since.isoformat()}{earlier}"


def rule_notes(rule: Rule) -> list[str]:
    """Return what fixes the lines of a rule, what knows-nothing predictors would get, and every earlier version."""
    lines = {} if rule.kind == "exact" else rule.lines
    notes = [f"{name + ': ' if name else ''}{line.line}" for name, line in lines.items() if line.line]
    for name, control in rule.controls.items():
        values = control.items() if isinstance(control, Mapping) else [(ONLY, control)]
        shown = ", ".join(f"{key} {Measured(value)}".strip() for key, value in values)
        notes.append(f"a predictor that knows nothing ({name}) would measure {shown}")
    for change in rule.history:
        gave = f" It gives: {change.verdict}." if change.verdict else ""
        notes.append(f"Rule of {change.date.isoformat()}: {change.rule}.{gave} Changed because {change.why}.")
    return notes


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
            f"<td>{to_html(v.measured)}</td><td>{MARKS[v.verdict]} {v.verdict}</td></tr>"
            for v in self.verdicts
        )
        table = f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        return {"text/plain": str(self), "text/html": table}
