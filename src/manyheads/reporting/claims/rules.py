"""The rules that turn an estimate and its interval into a verdict, and the words for verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real

from manyheads.names import unknown
from manyheads.reporting.numbers import number

EXACT, HOLDS, PARTLY, NOT_HERE, MORE_COMPUTE = (
    "exact",
    "holds",
    "partly",
    "not reproduced here",
    "needs more compute",
)
VERDICTS = (EXACT, HOLDS, PARTLY, NOT_HERE, MORE_COMPUTE)
MARKS = {EXACT: "✔✔", HOLDS: "✔", PARTLY: "◐", NOT_HERE: "✘", MORE_COMPUTE: "…"}
RULES = {"exact": ["tolerance"], "region": ["low", "high", "min_seeds"], "share": []}


@dataclass(frozen=True)
class Rule:
    """How an estimate becomes a verdict; see the head of ``claims.toml`` for the kinds.

    Raises
    ------
    ValueError
        For an unknown kind, numbers that the kind does not take or lacks, a negative tolerance, ends of a region that
        are not finite or not in order, and a number of seeds that is not a whole number of at least 1.
    """

    kind: str
    tolerance: float | None = None
    low: float | None = None
    high: float | None = None
    min_seeds: int | None = None
    needs: str | None = None
    illustrates: bool = False

    def __post_init__(self):
        if self.kind not in RULES:
            raise ValueError(unknown("rule kind", self.kind, RULES))
        takes = RULES[self.kind]
        given = [name for name in ("tolerance", "low", "high", "min_seeds") if getattr(self, name) is not None]
        if set(given) - set(takes) or (takes and not set(given) - {"min_seeds"}):
            raise ValueError(f"a rule of kind {self.kind!r} takes {', '.join(takes) or 'no number'}, got {given}")
        for name in given:
            value = getattr(self, name)
            if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
                raise ValueError(f"{name}={value!r} must be a finite number; leave it out for no limit")
        if self.tolerance is not None and self.tolerance < 0:
            raise ValueError(f"tolerance={self.tolerance} is negative; 0 is the strictest")
        if self.min_seeds is not None and (self.min_seeds < 1 or self.min_seeds != int(self.min_seeds)):
            raise ValueError(f"min_seeds={self.min_seeds} must be a whole number of at least 1")
        low, high = self.region
        if low > high:
            raise ValueError(f"low={low} lies above high={high}")

    @property
    def region(self) -> tuple[float, float]:
        """The ends of the region; infinite where the rule names none."""
        return -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high

    def in_words(self) -> str:
        """The rule as a sentence for readers."""
        if self.illustrates:
            plain = replace(self, illustrates=False).in_words()
            return plain.replace("holds when", "partly when") + "; an experiment cannot show more of this theorem"
        if self.kind == "exact":
            limit = f"at most {number(self.tolerance)}" if self.tolerance else "0"
            return f"exact when the largest deviation is {limit}"
        if self.kind == "share":
            return "holds when every listed condition is met"
        ends = [("above", self.low), ("below", self.high)]
        sides = " and ".join(f"{side} {number(end)}" for side, end in ends if end is not None)
        seeds = f", from at least {self.min_seeds} seeds" if self.min_seeds else ""
        device = f"; needs {self.needs}" if self.needs else ""
        return f"holds when the whole interval lies {sides}{seeds}{device}"

    def verdict(self, estimate: float, interval: tuple[float, float], n_seeds: int | None, device: str) -> str:
        """Apply the rule. Evidence too thin for the rule gives ``needs more compute``, whatever the estimate."""
        if self.illustrates:
            verdict = replace(self, illustrates=False).verdict(estimate, interval, n_seeds, device)
            return PARTLY if verdict == HOLDS else verdict
        if self.needs and device.partition(":")[0] != self.needs:
            return MORE_COMPUTE
        if self.kind == "exact":
            return EXACT if estimate <= self.tolerance else NOT_HERE
        if self.kind == "share":
            return HOLDS if estimate == 1 else NOT_HERE if estimate == 0 else PARTLY
        if (n_seeds or 0) < (self.min_seeds or 0):
            return MORE_COMPUTE
        (low, high), (least, most) = interval, self.region
        if least <= low and high <= most:
            return HOLDS
        return PARTLY if low < most and high > least else NOT_HERE
