"""One quantity, the line it must lie on the right side of, and what comes out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from manyheads.reporting.claims.verdicts import FAILED, MET, OPEN
from manyheads.reporting.formulas import to_html
from manyheads.reporting.numbers import number


@dataclass(frozen=True)
class Measured:
    """A number, its interval where it has one, and the seeds behind it; or a fact, ``True`` or ``False``."""

    value: float | bool
    interval: tuple[float, float] | None = None
    n_seeds: int | None = None

    def __str__(self) -> str:
        """To three digits: more would differ between platforms."""
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        ends = f" [{', '.join(map(number, self.interval))}]" if self.interval else ""
        return number(self.value) + ends


@dataclass(frozen=True)
class Condition:
    """What one quantity must satisfy: ``low < interval < high``, or ``low <= value <= high`` where it has no interval.

    An interval must clear the line: a ratio of exactly 1 is not above 1. With neither end, a fact that must be true.

    Attributes
    ----------
    text
        The quantity, in words; a rule of kind ``region`` leaves that to the claim's ``measure``.
    low, high
        Ends of the region, either may be missing.
    line
        What fixes them: the claim's own bound, a smallest effect of interest, a margin.

    Raises
    ------
    ValueError
        For ends that are not finite or not in order, a line that is missing or has no end to explain, and texts that
        are no text.
    """

    text: str
    low: float | None = None
    high: float | None = None
    line: str = ""

    def __post_init__(self):
        for name in ("text", "line"):
            check_text(name, getattr(self, name))
        for name in ("low", "high"):
            check_number(name, getattr(self, name))
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low={self.low} lies above high={self.high}")
        if self.is_fact and self.line:
            raise ValueError(f"line={self.line!r} explains an end, and neither low nor high is given")
        if not self.is_fact and not self.line.strip():
            raise ValueError('line is missing: say what fixes low or high, for example "the claim\'s own bound"')

    @property
    def is_fact(self) -> bool:
        """Whether this is a yes or no."""
        return self.low is None and self.high is None

    def outcome(self, measured: Measured) -> str:
        """Return ``met``, ``failed``, or ``open`` when the interval holds both sides of a line."""
        if self.is_fact:
            return MET if measured.value else FAILED
        least = -math.inf if self.low is None else self.low
        most = math.inf if self.high is None else self.high
        if measured.interval is None:
            return MET if least <= measured.value <= most else FAILED
        low, high = measured.interval
        if least < low and high < most:
            return MET
        return FAILED if high <= least or low >= most else OPEN

    def region_in_words(self, interval: bool) -> str:
        """Return where the quantity must lie: ``above 3`` for an interval, ``at least 3`` for a number."""
        if self.is_fact:
            return "true"
        names = ("above", "below") if interval else ("at least", "at most")
        ends = zip(names, (self.low, self.high), strict=True)
        return " and ".join(f"{name} {number(end)}" for name, end in ends if end is not None)


def check_text(name: str, text: object) -> None:
    """Refuse what is not a text or holds TeX that cards cannot show."""
    if not isinstance(text, str):
        raise ValueError(f"{name}={text!r} must be a text")
    to_html(text)


def check_number(name: str, value: object) -> None:
    """Refuse what is neither missing nor a finite number."""
    if value is not None and (not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value)):
        raise ValueError(f"{name}={value!r} must be a finite number; leave it out for no limit")
