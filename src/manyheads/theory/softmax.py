r"""What softmax retrieves, and how sharp it must be.

**The largest value.** Let :math:`x_1, \dots, x_T` be numbers with maximum :math:`m`, read with weights softmax of
:math:`\beta x`. Then

.. math:: 0 \le m - \sum_t p_t x_t \le W\big((T-1)/e\big)\,/\,\beta ,

with Lambert's function :math:`W` (:math:`W(z)\,e^{W(z)} = z`). The bound is attained when the other :math:`T-1` values
tie at :math:`u/\beta` below the maximum, :math:`u = 1 + W((T-1)/e)`. If all values lie in an interval of length R with
:math:`\beta R < u`, that is out of reach, and the sharp bound is :math:`R (T-1) / (e^{\beta R} + T - 1)`.

**Another value.** If the winning score beats all others by at least a gap :math:`\gamma`, the value that is read
differs from the winner's by at most :math:`R (T-1) / (e^\gamma + T - 1)`, R being the range of the values; sharp too.

Ours (claim X3); proofs are in chapter 2. Scores and gaps are in nats, values and errors in the unit of the values.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from scipy.special import lambertw
from torch import Tensor

from manyheads.models.checks import above_zero, at_least_zero, positive_int


def retrieval_error_bound(n_tokens: int, beta: float, value_range: float = math.inf) -> float:
    """Largest possible ``max(x) - softmax(beta x) . x`` over ``n_tokens`` values in an interval of ``value_range``.

    Parameters
    ----------
    n_tokens
        Number of values T.
    beta
        Sharpness, at least 0, in 1 / (unit of the values).
    value_range
        Length R of an interval that holds all values, in the unit of the values.

    Returns
    -------
    float
        The bound, attained by :func:`worst_case_scores`. Infinite for ``beta = 0`` and unbounded values.

    Raises
    ------
    ValueError
        For ``n_tokens`` below 1, or a negative ``beta`` or ``value_range``.
    """
    n_tokens = positive_int("n_tokens", n_tokens)
    beta = at_least_zero("beta", beta, infinite=True)
    value_range = at_least_zero("value_range", value_range, infinite=True)
    if n_tokens == 1 or value_range == 0:
        return 0.0
    if beta == 0:
        return _mean_error(n_tokens, value_range)
    if beta * value_range >= _worst_gap(n_tokens):
        return (_worst_gap(n_tokens) - 1) / beta
    return gap_error_bound(n_tokens, beta * value_range, value_range)


def sharpness_for(n_tokens: int, tolerance: float, value_range: float = math.inf) -> float:
    """Smallest ``beta`` whose :func:`retrieval_error_bound` is at most ``tolerance``; 0 when any will do.

    Raises
    ------
    ValueError
        For ``n_tokens`` below 1, ``tolerance`` not above 0, or a negative ``value_range``.
    """
    n_tokens = positive_int("n_tokens", n_tokens)
    tolerance = above_zero("tolerance", tolerance)
    value_range = at_least_zero("value_range", value_range, infinite=True)
    if tolerance >= _mean_error(n_tokens, value_range):
        return 0.0
    worst = _worst_gap(n_tokens)
    if tolerance >= value_range * ((worst - 1) / worst):  # the range keeps the worst case out of reach
        return gap_for(n_tokens, tolerance, value_range) / value_range
    return (worst - 1) / tolerance


def worst_case_scores(n_tokens: int, beta: float, value_range: float = math.inf, **tensor: Any) -> Tensor:
    """Values, shape [T], whose softmax average misses their maximum by exactly :func:`retrieval_error_bound`.

    The first value is the maximum, 0; all others tie below it. ``**tensor`` (``dtype``, ``device``) as in
    :func:`torch.full`; float64 by default. ``beta`` must be finite and above 0: without sharpness the worst case is the
    range itself.

    Raises
    ------
    ValueError
        For ``n_tokens`` below 1, ``beta`` not above 0 or so small that the values have no float64, or a negative
        ``value_range``.
    """
    n_tokens = positive_int("n_tokens", n_tokens)
    beta = above_zero("beta", beta)
    lowest = min(_worst_gap(n_tokens) / beta, at_least_zero("value_range", value_range, infinite=True))
    if lowest == math.inf:
        raise ValueError(f"beta={beta} puts the worst case beyond every float; nearest: 1e-300, or a value_range")
    values = torch.full((n_tokens,), -lowest, **{"dtype": torch.float64, **tensor})
    values[0] = 0
    return values


def gap_error_bound(n_tokens: int, gap: float, value_range: float) -> float:
    r"""Largest error of reading one of T values whose score beats all others by at least ``gap``.

    .. math:: R\,\frac{T-1}{e^{\gamma} + T - 1}

    attained when all other scores lie exactly ``gap`` below and all other values at the far end of the range. An
    infinite gap leaves no error whatever the range; an infinite range no bound at any other gap.

    Raises
    ------
    ValueError
        For ``n_tokens`` below 1, or a negative ``gap`` or ``value_range``.
    """
    n_tokens = positive_int("n_tokens", n_tokens)
    gap = at_least_zero("gap", gap, infinite=True)
    value_range = at_least_zero("value_range", value_range, infinite=True)
    others = n_tokens - 1
    if others == 0 or value_range == 0 or gap == math.inf:
        return 0.0
    if value_range == math.inf:
        return math.inf
    # As in the docstring, in an order in which neither a large gap nor a wide range is lost before they meet.
    root = math.exp(-gap / 2)
    return min(value_range, (value_range * root) * (others * root / (1 + others * root * root)))


def gap_for(n_tokens: int, tolerance: float, value_range: float) -> float:
    """Smallest gap between the winning score and the others whose :func:`gap_error_bound` is at most ``tolerance``.

    Infinite for an infinite range, and 0 when any will do.

    Raises
    ------
    ValueError
        For ``n_tokens`` below 1, ``tolerance`` not above 0, or a negative ``value_range``.
    """
    n_tokens = positive_int("n_tokens", n_tokens)
    tolerance = above_zero("tolerance", tolerance)
    value_range = at_least_zero("value_range", value_range, infinite=True)
    if tolerance >= _mean_error(n_tokens, value_range):
        return 0.0
    return max(0.0, math.log(n_tokens - 1) + math.log(value_range - tolerance) - math.log(tolerance))


def visibility_bound(gap: float, beta: float, value_range: float, slope: float = 1.0) -> float:
    r"""How strongly a value can move the state, when the maximum lies ``gap`` above it.

    The state is :math:`y = \sum_t p_t \varphi(x_t)` with weights softmax of :math:`\beta x`, where :math:`\varphi` has
    slope at most s = ``slope`` and range R = ``value_range``. Then, for a value g = ``gap`` below the maximum,

    .. math:: |\partial y / \partial x| \le e^{-\beta g} (s + \beta R) :

    it fades exponentially in the sharpness. Ours.

    Raises
    ------
    ValueError
        For a number that is negative or not finite.
    """
    gap, beta = at_least_zero("gap", gap), at_least_zero("beta", beta)
    value_range, slope = at_least_zero("value_range", value_range), at_least_zero("slope", slope)
    root = math.exp(-beta * gap / 2)  # twice the root: neither factor may overflow where their product does not
    return root * slope * root + (root * beta) * (root * value_range)


def _mean_error(n_tokens: int, value_range: float) -> float:
    """What the plain mean misses at most: ``value_range`` (T - 1) / T."""
    return value_range * ((n_tokens - 1) / n_tokens) if n_tokens > 1 else 0.0


def _worst_gap(n_tokens: int) -> float:
    """The gap u = 1 + W((T-1)/e), in units of 1/beta, at which T-1 tied values do most harm."""
    return 1.0 + float(lambertw((n_tokens - 1) / math.e).real)
