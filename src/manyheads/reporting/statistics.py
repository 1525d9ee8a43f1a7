"""Intervals for means over seeds. A bootstrap on five seeds covers too little, so these are Student's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


@dataclass(frozen=True)
class Mean:
    """A mean with its confidence interval ``[low, high]`` from ``n_seeds`` independent values (same unit as they)."""

    mean: float
    low: float
    high: float
    n_seeds: int
    confidence: float = 0.95

    @property
    def interval(self) -> tuple[float, float]:
        """The interval as a pair."""
        return self.low, self.high


def student(values: ArrayLike, confidence: float = 0.95, log: bool = False) -> Mean:
    r"""Mean and Student-t interval, :math:`\bar x \pm t_{n-1} s / \sqrt n`.

    Parameters
    ----------
    values
        One number a seed, shape [n_seeds], n_seeds at least 2. Pass differences for a paired comparison.
    confidence
        Coverage for normal data, between 0 and 1.
    log
        Average logarithms instead: the geometric mean and its interval. Values must be positive.

    Raises
    ------
    ValueError
        With fewer than two seeds, values that are not finite (or not positive, with ``log``), or a confidence outside
        (0, 1).
    """
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or numbers.size < 2:
        raise ValueError(
            f"values has shape {numbers.shape}: an interval needs one number from each of at least 2 seeds"
        )
    if not np.isfinite(numbers).all():
        raise ValueError(f"values holds {np.count_nonzero(~np.isfinite(numbers))} numbers that are not finite")
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence} must lie between 0 and 1, for example 0.95")
    if log:
        if not (numbers > 0).all():
            raise ValueError(f"values holds {numbers.min():g}: a geometric mean needs positive numbers")
        numbers = np.log(numbers)
    mean = float(numbers.mean())
    half = float(stats.t.ppf(0.5 + confidence / 2, numbers.size - 1) * stats.sem(numbers))
    middle, low, high = (math.exp(end) if log else end for end in (mean, mean - half, mean + half))
    return Mean(middle, low, high, int(numbers.size), confidence)
