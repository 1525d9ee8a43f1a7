"""Ticks of logarithmic axes: positions whose labels have room, and labels in plain characters.

Matplotlib writes powers of ten in its own mathtext, which takes as long to parse as the rest of a figure takes to draw;
and on an axis of less than two decades it labels ticks until they collide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from manyheads.names import unknown
from manyheads.reporting.numbers import number, power

_ENOUGH, _MOST = 3, 9  # ticks that show a scale, and those that can still be told apart at a glance
_SMALL = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹,."


def log_axis(
    ax: Axes,
    which: str = "x",
    base: float = 10,
    ticks: Sequence[float] | None = None,
    format: Callable[[float], str] | None = None,
) -> None:
    """Make an axis logarithmic, with ticks that do not collide and labels such as ``10⁻¹²`` or ``20,000``.

    :func:`manyheads.reporting.figures.svg` gives every other logarithmic axis with matplotlib's own ticks the same;
    this function is for a base, ticks or labels of your choice. It leaves out minor ticks.

    Parameters
    ----------
    ax
        The axes to change.
    which
        ``"x"``, ``"y"`` or ``"both"``.
    base
        Base of the logarithm, above 1.
    ticks
        Where the ticks are, all positive; by default powers of the base or, where fewer than three are in view, round
        numbers between them.
    format
        Makes the label of a tick, for example ``"{:,}".format``.

    Raises
    ------
    ValueError
        For another ``which``, a base that is not above 1, or a tick that is not positive.
    """
    if which not in ("x", "y", "both"):
        raise ValueError(unknown("axis", which, ("x", "y", "both")))
    if not base > 1:
        raise ValueError(f"base={base} must be above 1, for example 2 or 10")
    if ticks is not None and not all(tick > 0 for tick in ticks):
        raise ValueError(f"ticks={list(ticks)} must be positive: a logarithmic axis has no other numbers")
    for name in ("x", "y") if which == "both" else which:
        getattr(ax, f"set_{name}scale")("log", base=base)
        axis = getattr(ax, f"{name}axis")
        axis.set_major_locator(LogTicks(base) if ticks is None else ticker.FixedLocator(list(ticks)))
        axis.set_major_formatter(LogLabels(base) if format is None else lambda value, _: format(value))
        _without_minor_ticks(axis)


def plain_log_ticks(figure: Figure) -> None:
    """Give the logarithmic axes of a figure our ticks and labels, where they still have matplotlib's."""
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_scale() != "log":
                continue
            base = axis.get_transform().base  # type: ignore[attr-defined] # a logarithmic one has a base
            if isinstance(axis.get_major_formatter(), ticker.LogFormatter):
                axis.set_major_formatter(LogLabels(base))
            if type(axis.get_major_locator()) is ticker.LogLocator:
                axis.set_major_locator(LogTicks(base))
            if isinstance(axis.get_minor_formatter(), ticker.LogFormatter):
                _without_minor_ticks(axis)


def _without_minor_ticks(axis: Axis) -> None:
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_minor_formatter(ticker.NullFormatter())


class LogLabels(ticker.Formatter):
    """Labels in plain characters: powers of the base as such, other numbers with commas, or times a power of ten."""

    def __init__(self, base: float):
        self._base = base

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Label one number."""
        return labels([x], self._base)[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Label all ticks of an axis alike."""
        return labels(values, self._base)


def labels(values: Sequence[float], base: float) -> list[str]:
    """Return the labels of ticks, in one form for all of them.

    >>> labels([1e-12, 1], 10), labels([5000, 10000], 10), labels([1, 2, 64], 2)
    (['10⁻¹²', '10⁰'], ['5,000', '10,000'], ['1', '2', '64'])
    """
    exponents = [math.log(value, base) if value > 0 else math.nan for value in values]
    whole = all(math.isclose(e, round(e), abs_tol=1e-9) for e in exponents if not math.isnan(e))
    small = all(1e-4 <= value < 1e6 for value in values)
    counts = small and all(value >= 1 for value in values)
    if whole and base == int(base) and (base == 10 or not counts):
        return ["" if math.isnan(e) else power(round(e), int(base)) for e in exponents]
    return [f"{value:,.10g}" if small else number(value) for value in values]


class LogTicks(ticker.LogLocator):
    """Powers of the base where three or more are in view, else round numbers, as many as their labels have room."""

    def __init__(self, base: float):
        super().__init__(base=base)
        self.base = base

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:  # type: ignore[override]
        """Return the ticks in the view from ``vmin`` to ``vmax``."""
        low, high = sorted((float(vmin), float(vmax)))
        if not 0 < low < high:  # an axis without data
            return super().tick_values(vmin, vmax)
        axis: Any = self.axis  # that of a drawn figure
        font = axis.get_major_ticks(1)[0].label1.get_size()
        across = axis.axis_name == "x"
        length = (axis.axes.bbox.width if across else axis.axes.bbox.height) * 72 / axis.get_figure().dpi
        return choose(low, high, self.base, length / font, across)


@lru_cache(maxsize=256)  # a drawing asks ten times
def choose(low: float, high: float, base: float, length: float, across: bool) -> list[float]:
    """Return the ticks for a view.

    Parameters
    ----------
    low, high
        Ends of the view.
    base
        Base of the logarithm.
    length
        Of the axis, in units of the font size.
    across
        Whether labels stand side by side, as along x, or above each other.
    """
    best: list[float] = []
    for ticks in _candidates(low, high, base):
        kept: list[float] = []
        end = -math.inf  # of the last label
        for tick, label in zip(ticks, labels(ticks, base), strict=True):
            place = math.log(tick) * length / (math.log(high) - math.log(low))
            half = _width(label) / 2 if across else 0.5
            if place - half >= end + 0.5:
                kept.append(tick)
                end = place + half
        if _ENOUGH <= len(ticks) <= _MOST and kept == ticks:
            return ticks
        if len(best) < len(kept) <= _MOST:
            best = kept
    return best


def _candidates(low: float, high: float, base: float) -> Iterator[list[float]]:
    """Ticks in view, the best choice first."""

    def within(ticks: Iterable[float]) -> list[float]:
        return [float(tick) for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]

    first, last = (round(math.log(end, base), 9) for end in (low, high))
    exponents = range(math.ceil(first), math.floor(last) + 1)
    if len(exponents) >= _ENOUGH:
        for stride in range(1, len(exponents)):
            for offset in range(stride):  # multiples of the stride first
                chosen = exponents[(offset - exponents[0]) % stride :: stride]
                yield within(base**e if e >= 0 else 1 / base**-e for e in chosen)
        return
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), range(1, 10)):
        # 3 times 10^-5 and 3 / 10^5 differ in the last digit; the second is the number that is meant
        yield within(factor * 10**e if e >= 0 else factor / 10**-e for e in decades for factor in factors)
    for n in (5, 4, 3):
        yield within(ticker.MaxNLocator(n, steps=[1, 2, 5, 10]).tick_values(low, high))


def _width(label: str) -> float:
    """Width in units of the font size, by an estimate that is never too small for digits."""
    return sum(0.45 if character in _SMALL else 0.66 for character in label)
