"""Judging: what was measured, checked at the door, becomes a verdict by the rule of the ledger."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from operator import index
from typing import Any

from manyheads.names import unknown
from manyheads.reporting.claims.cards import Verdict
from manyheads.reporting.claims.conditions import Condition, Measured, check_text
from manyheads.reporting.claims.ledger import Claim, ledger
from manyheads.reporting.claims.rules import ONLY, Rule, shared_confidence
from manyheads.reporting.statistics import Mean


def judge(
    id: str,
    *,
    estimate: float | None = None,
    interval: Sequence[float] | None = None,
    n_seeds: int | None = None,
    mean: Mean | None = None,
    conditions: Mapping[str, Mean | float | bool] | None = None,
    unit: str = "",
    evidence: str = "",
    device: str = "cpu",
    recorded: str | None = None,
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
    mean
        A :class:`~manyheads.reporting.statistics.Mean` instead of the three.
    conditions
        For a rule that lists conditions: every one by name, with a mean, a number, or ``True`` or ``False``. Means need
        the confidence ``1 - 0.05 / m``, m being their number: together they are right 95 times in 100.
    unit, evidence
        Words for the card: the unit of the estimate, and what was run to get it. The evidence may hold formulas, in
        TeX between dollar signs.
    device
        Where it ran, as torch names it: ``"cpu"``, ``"cuda:0"``.
    recorded
        The day of the recording behind it, ``"2026-12-01"``; empty for what runs live. A card says so when its rule is
        younger.

    Raises
    ------
    ValueError
        For an unknown id, conditions that are not those of the rule, numbers that are not finite, an interval that is
        not ordered around its estimate, that is missing where the rule asks for seeds, or whose confidence is too
        small, a negative deviation, a number of seeds that is not a whole number of at least 1, words that are not a
        text, a device that torch would not name so, and a day that is none.
    """
    claims = ledger()
    if id not in list(claims):
        raise ValueError(unknown("claim id", id, claims))
    claim = claims[id]
    try:
        if claim.rule.conditions:
            ours = {"estimate": estimate, "interval": interval, "n_seeds": n_seeds, "mean": mean, "unit": unit or None}
            _leave_out("the rule lists conditions", **ours)
            measured = _conditions(claim.rule, conditions)
        else:
            _leave_out("the rule lists none", conditions=conditions)
            measured = {ONLY: _single(claim.rule, estimate, interval, n_seeds, mean)}
        return _verdict(claim, measured, unit, evidence, device, recorded)
    except ValueError as error:
        raise ValueError(f"{id}: {error}") from None


def _leave_out(why: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"leave out {name}={value!r}: {why}")


def _single(rule: Rule, estimate, interval, n_seeds, mean) -> Measured:
    if mean is not None:
        _leave_out("mean has it", estimate=estimate, interval=interval, n_seeds=n_seeds)
        found = _mean("mean", mean, shared_confidence(1))
    else:
        estimate = _finite("estimate", estimate)
        found = Measured(
            estimate,
            None if interval is None else _interval(interval, estimate),
            None if n_seeds is None else _seeds("n_seeds", n_seeds),
        )
    if rule.kind == "exact" and found.interval is not None:
        raise ValueError("a deviation has no interval: hand in the largest one found as estimate")
    if rule.kind == "exact" and found.value < 0:
        raise ValueError(f"estimate={found.value} is a deviation, so it cannot be negative: take the absolute value")
    if rule.min_seeds and found.interval is None:
        raise ValueError("the rule asks for a 95% interval: hand in mean=statistics.student(values)")
    return found


def _conditions(rule: Rule, given: Any) -> dict[str, Measured]:
    if not isinstance(given, Mapping):
        raise ValueError(f"conditions={given!r} must map every condition to what was measured: {', '.join(rule.lines)}")
    for name in given:
        if name not in list(rule.lines):
            raise ValueError(unknown("condition", name, rule.lines))
    for name in rule.lines:
        if name not in given:
            raise ValueError(f"condition {name!r} is missing; the rule lists {', '.join(rule.lines)}")
    confidence = shared_confidence(sum(isinstance(value, Mean) for value in given.values()))
    return {name: _condition(name, given[name], rule, line, confidence) for name, line in rule.lines.items()}


def _condition(name: str, value: Any, rule: Rule, line: Condition, confidence: float) -> Measured:
    if line.is_fact:
        if not _is_fact(value):
            raise ValueError(f"{name}={value!r} must be True or False")
        return Measured(bool(value))
    if _is_fact(value):
        raise ValueError(f"{name}={value!r} must be a number or a mean, not a yes or no")
    if isinstance(value, Mean):
        return _mean(name, value, confidence)
    if rule.min_seeds:
        raise ValueError(
            f"{name}={value!r} has no interval: hand in statistics.student(values, confidence={rule.confidence:.6g})"
        )
    return Measured(_finite(name, value))


def _verdict(claim: Claim, measured, unit, evidence, device, recorded) -> Verdict:
    for name, text in (("unit", unit), ("evidence", evidence)):
        check_text(name, text)
    if not isinstance(device, str) or not re.fullmatch(r"[a-z]+(:\d+)?", device):
        raise ValueError(f'device={device!r} must be a text such as "cpu" or "cuda:0"')
    verdict = claim.rule.verdict(measured, device)
    return Verdict(claim, verdict, measured, unit, evidence, device, _day(recorded))


def _is_fact(value: Any) -> bool:
    """Whether this is one yes or no: Python's, or that of an array library."""
    ours = str(getattr(value, "dtype", "")).endswith("bool") and getattr(value, "shape", None) == ()
    return isinstance(value, bool) or ours


def _finite(name: str, value: Any) -> float:
    try:
        found = math.nan if isinstance(value, str | bytes) or _is_fact(value) else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # torch's own for what is not one number
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{name}={value!r} is not a finite number")
    return found


def _interval(interval: Any, estimate: float, name: str = "interval") -> tuple[float, float]:
    try:
        ends = tuple(interval)
    except TypeError:
        ends = ()
    if len(ends) != 2:
        raise ValueError(f"{name}={interval!r} must be a pair (low, high) around estimate={estimate}")
    low, high = (_finite(f"{name}[{i}]", end) for i, end in enumerate(ends))
    if not low <= estimate <= high:
        raise ValueError(f"{name}=({low}, {high}) must be (low, high) around estimate={estimate}")
    return low, high


def _mean(name: str, mean: Any, confidence: float) -> Measured:
    if not isinstance(mean, Mean):
        raise ValueError(f"{name}={mean!r} must be a statistics.Mean, as statistics.student(values) gives it")
    found = _finite(f"{name}.confidence", mean.confidence)
    if not 0 < found < 1 or found < confidence - 1e-9:
        raise ValueError(f"{name} has an interval of confidence {found:.6g}; ask student for {confidence:.6g} or more")
    value = _finite(f"{name}.mean", mean.mean)
    interval = _interval(mean.interval, value, f"{name}.interval")
    return Measured(value, interval, _seeds(f"{name}.n_seeds", mean.n_seeds))


def _seeds(name: str, n_seeds: Any) -> int:
    try:
        found = 0 if isinstance(n_seeds, bool) else index(n_seeds)
    except TypeError:
        found = 0
    if found < 1:
        raise ValueError(f"{name}={n_seeds!r} must be a whole number of at least 1, or left out")
    return found


def _day(recorded: Any) -> str:
    if recorded is None or recorded == "":
        return ""
    try:
        return date.fromisoformat(recorded).isoformat()
    except (TypeError, ValueError):
        raise ValueError(f'recorded={recorded!r} must be a day, such as "2026-12-01"') from None
