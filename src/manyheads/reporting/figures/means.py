"""Means over seeds as lines with bands or points with bars, and the same in words for readers who cannot see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from manyheads.reporting.figures.look import style
from manyheads.reporting.numbers import number
from manyheads.reporting.statistics import Mean


def band(
    ax: Axes,
    x: Sequence[float],
    means: Sequence[Mean],
    *,
    label: str = "",
    index: int = 0,
    faint: bool = False,
    at: str = "{}",
) -> str:
    """Draw a line through means with a band for their intervals, and return them in words.

    Parameters
    ----------
    ax
        The axes to draw on.
    x
        One number a mean.
    means
        From :func:`manyheads.reporting.statistics.student`; with its ``log=True`` on a logarithmic axis.
    label
        Name of the series in the legend.
    index
        Number of the series, for :func:`manyheads.reporting.figures.style`.
    faint
        Draw a series that stands back behind another one.
    at
        How the words name a place, with ``{}`` for a number of ``x``: ``"n = {}"``, ``"{:,} parameters"``.

    Returns
    -------
    str
        For the alt text: ``"0.12 at n = 4, 0.034 at n = 8"``.

    Raises
    ------
    ValueError
        When there is not one mean for every x, or a mean is not a :class:`manyheads.reporting.statistics.Mean`.
    """
    middle, low, high = _ends(x, means)
    look = style(index)
    line, fill = ({"alpha": 0.35, "linewidth": 1}, 0.1) if faint else ({}, 0.25)
    ax.plot(x, middle, label=label, **look | line)
    ax.fill_between(x, low, high, color=look["color"], alpha=fill, linewidth=0)
    return _words(x, middle, at)


def error_bars(
    ax: Axes,
    x: Sequence[float],
    means: Sequence[Mean],
    *,
    label: str = "",
    index: int = 0,
    at: str = "{}",
    **marks: Any,
) -> str:
    """Draw means as points with bars for their intervals, and return them in words.

    Parameters are those of :func:`band`; ``marks`` go to :meth:`matplotlib.axes.Axes.errorbar`.

    Raises
    ------
    ValueError
        As :func:`band` does.
    """
    middle, low, high = _ends(x, means)
    below = [mean - end for mean, end in zip(middle, low, strict=True)]
    above = [end - mean for mean, end in zip(middle, high, strict=True)]
    ax.errorbar(x, middle, [below, above], **style(index) | {"linestyle": "", "capsize": 4, "label": label} | marks)
    return _words(x, middle, at)


def _ends(x: Sequence[float], means: Sequence[Mean]) -> tuple[list[float], list[float], list[float]]:
    if len(x) != len(means):
        raise ValueError(f"x has {len(x)} numbers and means has {len(means)}: each mean needs one x")
    for mean in means:
        if not isinstance(mean, Mean):
            raise ValueError(f"means holds {mean!r}: statistics.student(values) makes a mean with its interval")
    return [m.mean for m in means], [m.low for m in means], [m.high for m in means]


def _words(x: Sequence[float], middle: Sequence[float], at: str) -> str:
    return ", ".join(f"{number(mean, 2)} at {at.format(place)}" for place, mean in zip(x, middle, strict=True))
