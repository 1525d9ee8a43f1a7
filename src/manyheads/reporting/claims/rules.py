"""The rules that turn measurements into a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from manyheads.names import unknown
from manyheads.reporting.claims.conditions import Condition, Measured, check_number, check_text
from manyheads.reporting.claims.verdicts import (
    EXACT,
    FAILED,
    HOLDS,
    ILLUSTRATED,
    INCONCLUSIVE,
    MET,
    MORE_COMPUTE,
    NOT_HERE,
    OPEN,
    PARTLY,
)
from manyheads.reporting.numbers import number

RULES = {"exact": ["tolerance"], "region": ["low", "high", "line"], "conditions": ["conditions"]}
CAPS = (ILLUSTRATED, PARTLY)
CONTROLS = ("constant", "random", "untrained")
ONLY = ""
"""The name of the one quantity of a rule that lists no conditions."""


@dataclass(frozen=True)
class Change:
    """An earlier version of a rule: until when it stood, what it said and gave, and why it was changed."""

    date: date
    rule: str
    why: str
    verdict: str = ""

    def __post_init__(self):
        check_date("date", self.date)
        for name in ("rule", "why", "verdict"):
            check_text(name, getattr(self, name))


@dataclass(frozen=True)
class Rule:
    """How measurements become a verdict; see the head of ``claims.toml`` for the kinds.

    A rule that asks for seeds is statistical: its quantities carry intervals, which share the 5%, and it names what
    three predictors that know nothing would measure. A rule that one of them would satisfy is refused.

    Raises
    ------
    ValueError
        For an unknown kind, fields that the kind does not take or lacks, a negative tolerance, what
        :class:`~manyheads.reporting.claims.conditions.Condition` refuses, a number of seeds that is not a whole number
        of at least 1, a cap without a reason, a missing date, and controls that are missing or satisfy the rule.
    """

    kind: str
    since: date
    tolerance: float | None = None
    low: float | None = None
    high: float | None = None
    line: str = ""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    min_seeds: int | None = None
    needs: str | None = None
    at_most: str | None = None
    because: str = ""
    controls: Mapping[str, float | Mapping[str, float | bool]] = field(default_factory=dict)
    history: Sequence[Change] = ()

    def __post_init__(self):
        if self.kind not in RULES:
            raise ValueError(unknown("rule kind", self.kind, RULES))
        given = [name for names in RULES.values() for name in names if getattr(self, name) not in (None, "", {})]
        if set(given) - set(RULES[self.kind]) or not given:
            raise ValueError(f"a rule of kind {self.kind!r} takes {', '.join(RULES[self.kind])}, got {given}")
        check_number("tolerance", self.tolerance)
        if self.tolerance is not None and self.tolerance < 0:
            raise ValueError(f"tolerance={self.tolerance} is negative; 0 is the strictest")
        if self.kind == "region" and self.low is None and self.high is None:
            raise ValueError("a rule of kind 'region' needs low, high or both")
        if not all(isinstance(line, Condition) for line in self.lines.values()):
            raise ValueError(f"conditions={self.conditions!r} must map names to Condition")
        check_date("since", self.since)
        check_number("min_seeds", self.min_seeds)
        if self.min_seeds is not None and (self.min_seeds < 1 or self.min_seeds != int(self.min_seeds)):
            raise ValueError(f"min_seeds={self.min_seeds} must be a whole number of at least 1")
        if self.min_seeds and (self.kind == "exact" or all(line.is_fact for line in self.lines.values())):
            raise ValueError(f"min_seeds={self.min_seeds} asks for seeds, and nothing in the rule carries an interval")
        check_text("because", self.because)
        if self.at_most is not None and (self.at_most not in CAPS or self.kind == "exact"):
            raise ValueError(f"at_most={self.at_most!r} must be {' or '.join(CAPS)}, for a rule that is not exact")
        if (self.at_most is None) != (not self.because.strip()):
            raise ValueError(
                f"because={self.because!r} gives the reason for at_most={self.at_most!r}: give both or none"
            )
        self._check_controls()

    def _check_controls(self) -> None:
        if not self.controls and not self.min_seeds:
            return
        if set(self.controls) != set(CONTROLS):
            raise ValueError(
                f"controls are {list(self.controls)}, expected {', '.join(CONTROLS)}: what would such predictors get?"
            )
        for name, control in self.controls.items():
            values = control if isinstance(control, Mapping) else {ONLY: control}
            if set(values) != set(self.lines):
                raise ValueError(f"controls.{name} is {control!r}, expected {self._names()}")
            for key, value in values.items():
                _check_control(f"controls.{name}", value, self.lines[key])
            if self.outcomes({key: _certain(value) for key, value in values.items()}).count(MET) == len(values):
                raise ValueError(f"controls.{name}={control!r} would satisfy the rule, which therefore shows nothing")

    def _names(self) -> str:
        return f"a table of {', '.join(self.lines)}" if self.conditions else "one number"

    @property
    def lines(self) -> Mapping[str, Condition]:
        """What is judged, by name; a rule that lists no conditions judges one quantity."""
        if self.kind == "exact":
            return {ONLY: Condition("", high=self.tolerance, line="rounding")}
        return self.conditions or {ONLY: Condition("", self.low, self.high, self.line)}

    @property
    def confidence(self) -> float:
        """The confidence each interval must have, so that all of them together keep 95% (Bonferroni)."""
        return shared_confidence(sum(not condition.is_fact for condition in self.lines.values()))

    def outcomes(self, measured: Mapping[str, Measured]) -> list[str]:
        """Return ``met``, ``failed`` or ``open`` for every quantity, in the order of the rule."""
        return [condition.outcome(measured[name]) for name, condition in self.lines.items()]

    def verdict(self, measured: Mapping[str, Measured], device: str = "cpu") -> str:
        """Apply the rule. Evidence too thin for it gives ``needs more compute``, whatever was measured."""
        n_seeds = seeds_behind(measured)
        if (self.needs and device.partition(":")[0] != self.needs) or (n_seeds or 0) < (self.min_seeds or 0):
            return MORE_COMPUTE
        outcomes = self.outcomes(measured)
        if FAILED not in outcomes and OPEN not in outcomes:
            return EXACT if self.kind == "exact" else self.at_most or HOLDS
        if MET in outcomes:
            return PARTLY
        return INCONCLUSIVE if OPEN in outcomes else NOT_HERE

    def in_words(self) -> str:
        """Return the rule as a sentence for readers, with what would fail it."""
        if self.kind == "exact":
            limit = f"at most {number(self.tolerance)}" if self.tolerance else "0"
            return f"{EXACT} when the largest deviation is {limit}, otherwise {NOT_HERE}"
        best = self.at_most or HOLDS
        statistical = bool(self.min_seeds)
        if self.conditions:
            every = f"all {len(self.conditions)} conditions are met"
            met = f"{best} when {every}, {PARTLY} when some are" if best != PARTLY else f"{best} when some or {every}"
            failed = f"each of them fails, otherwise {INCONCLUSIVE}" if statistical else "none is"
            share = f"; intervals of {100 * self.confidence:.4g}% each share the 5%" if statistical else ""
            rule = f"{met}, {NOT_HERE} when {failed}{share}"
        elif statistical:
            region = self.lines[ONLY].region_in_words(interval=True)
            rule = f"{best} when the whole 95% interval lies {region}, {NOT_HERE} when it lies outside, "
            rule += f"otherwise {INCONCLUSIVE}"
        else:
            rule = f"{best} when it is {self.lines[ONLY].region_in_words(interval=False)}, otherwise {NOT_HERE}"
        seeds = f"; from at least {self.min_seeds} seeds" if self.min_seeds else ""
        device = f"; needs {self.needs}" if self.needs else ""
        return rule + seeds + device + (f"; {best} at most, because {self.because}" if self.because else "")


def shared_confidence(n_intervals: int) -> float:
    """Return ``1 - 0.05 / n``: with this confidence each, n intervals are right together 95 times in 100."""
    return 1 - 0.05 / max(1, n_intervals)


def seeds_behind(measured: Mapping[str, Measured]) -> int | None:
    """Return the smallest number of seeds behind the quantities; None where none has any."""
    return min((m.n_seeds for m in measured.values() if m.n_seeds is not None), default=None)


def check_date(name: str, value: object) -> None:
    """Refuse what is not a day."""
    if type(value) is not date:
        raise ValueError(f"{name}={value!r} must be a date, such as 2026-12-01")


def _check_control(name: str, value: object, condition: Condition) -> None:
    if value is None or condition.is_fact != isinstance(value, bool):
        raise ValueError(f"{name} holds {value!r}, expected {'true or false' if condition.is_fact else 'a number'}")
    if not condition.is_fact:
        check_number(name, value)


def _certain(value: float | bool) -> Measured:
    """A control is known without doubt: an interval of no width."""
    return Measured(value) if isinstance(value, bool) else Measured(value, (value, value))
