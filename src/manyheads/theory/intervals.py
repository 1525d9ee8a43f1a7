r"""Arithmetic with intervals that hold the exact result: what a proof by computer may rely on.

Sums, products and quotients of float64 are the exact ones, rounded to the nearest (IEEE 754), so the exact one lies
between the neighbours of what is computed. Every operation here therefore moves its lower end one number down and its
upper end one number up. (Numbers next to 0 must not be flushed to it; numpy does not.) Nothing else is trusted:
exponential and normal distribution are power series with a bound on what is left out, summed by these operations, and
not those of a library.

Background: Moore, Kearfott & Cloud 2009, "Introduction to Interval Analysis"; Tucker 2011, "Validated Numerics".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

EXP_TERMS = 14
NORMAL_TERMS = 100
NORMAL_RANGE = 8.0


@dataclass(frozen=True, eq=False)
class Interval:
    """An array of intervals ``[low, high]``; operations broadcast, and take plain arrays as exact numbers.

    An interval that holds NaN holds no statement, and every comparison with it fails.
    """

    low: np.ndarray
    high: np.ndarray

    __array_ufunc__ = None  # so that array * interval comes here

    def __add__(self, other: Interval | ArrayLike) -> Interval:
        other = exact(other)
        return _outward(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval | ArrayLike) -> Interval:
        return self + -exact(other)

    def __rsub__(self, other: Interval | ArrayLike) -> Interval:
        return exact(other) - self

    def __mul__(self, other: Interval | ArrayLike) -> Interval:
        other = exact(other)
        return _hull([a * b for a in (self.low, self.high) for b in (other.low, other.high)])

    def __truediv__(self, other: Interval | ArrayLike) -> Interval:
        other = exact(other)
        quotient = _hull([a / b for a in (self.low, self.high) for b in (other.low, other.high)])
        defined = (other.low > 0) | (other.high < 0)
        return Interval(np.where(defined, quotient.low, -np.inf), np.where(defined, quotient.high, np.inf))

    def __matmul__(self, other: Interval | ArrayLike) -> Interval:
        """Product of matrices ``[..., m, k]`` and ``[..., k, n]``."""
        return (self[..., None] * exact(other)[..., None, :, :]).sum(-2)

    __radd__, __rmul__ = __add__, __mul__

    def __rmatmul__(self, other: Interval | ArrayLike) -> Interval:
        return exact(other) @ self

    def __getitem__(self, index: Any) -> Interval:
        return Interval(self.low[index], self.high[index])

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.low.shape

    def arrange(self, function: Callable[[np.ndarray], np.ndarray]) -> Interval:
        """Apply what only rearranges an array, such as a reshape."""
        return Interval(function(self.low), function(self.high))

    def sum(self, axis: int) -> Interval:
        """Sum over one axis."""
        first, *others = (self.arrange(partial(np.take, indices=k, axis=axis)) for k in range(self.shape[axis]))
        return sum(others, first)

    def max(self) -> Interval:
        """Largest of all numbers in the array."""
        return self.arrange(np.max)

    def magnitude(self) -> np.ndarray:
        """Largest absolute values."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def exact(value: Interval | ArrayLike) -> Interval:
    """Return float64 numbers as intervals of length 0, and intervals as they are."""
    if isinstance(value, Interval):
        return value
    value = np.asarray(value, dtype=np.float64)
    return Interval(value, value)


def concatenate(parts: list[Interval], axis: int) -> Interval:
    """Join along an axis that exists."""
    return Interval(*(np.concatenate(ends, axis) for ends in zip(*((p.low, p.high) for p in parts), strict=True)))


def root(number: float) -> Interval:
    """Enclose the square root of an exact number, which IEEE 754 rounds to the nearest, like the four operations."""
    return _rounded(np.sqrt(np.float64(number)))


def exp(x: Interval) -> Interval:
    r"""Enclose the exponential: :math:`2^m e^z` with :math:`z = x - m \ln 2`, at most 0.36 in size.

    The Taylor polynomial of degree n misses :math:`e^z` by at most :math:`e^{|z|} |z|^{n+1} / (n+1)!`.
    """
    return _increasing(_exp, x)


def _exp(x: np.ndarray) -> Interval:
    x = np.clip(x, -1000.0, 1000.0)  # beyond, monotony: the ends are 0 and infinity there already
    power = np.rint(x / LN_2.low)
    z = x - power * LN_2
    total, left_out = exact(1.0), z.magnitude() * exact(1.5)
    for n in range(EXP_TERMS, 0, -1):
        total = 1.0 + z * total / n
        left_out = left_out * z.magnitude() / (n + 1)
    total = total + _around_0(left_out)
    # A product with a power of two is exact unless it leaves the range of float64.
    scaled = _outward(*(np.ldexp(end, power.astype(np.int64)) for end in (total.low, total.high)))
    return Interval(np.maximum(scaled.low, 0.0), scaled.high)


def normal_density(x: Interval) -> Interval:
    r"""Enclose the standard normal density :math:`\varphi(x) = e^{-x^2/2} / \sqrt{2 \pi}`."""
    return INVERSE_ROOT_2_PI * exp(x * x * -0.5)


def normal_cdf(x: Interval) -> Interval:
    r"""Enclose the standard normal distribution :math:`\Phi(x) = (1 + \operatorname{erf}(x / \sqrt 2)) / 2`.

    .. math:: \Phi(x) = \frac12 + \varphi(x) \sum_{k \ge 0} \frac{x^{2k+1}}{1 \cdot 3 \cdots (2k+1)}

    All terms have one sign, so nothing cancels. Where the ratio of a term to the one before is at most 1/2, so are all
    later ones, and what is left out is at most twice the first term left out.

    Source: Abramowitz & Stegun 1964, "Handbook of Mathematical Functions", 26.2.11.
    """
    return _increasing(_normal_cdf, x)


def _normal_cdf(x: np.ndarray) -> Interval:
    inside = exact(np.clip(x, -NORMAL_RANGE, NORMAL_RANGE))
    square, term = inside * inside, inside
    total = term
    for k in range(1, NORMAL_TERMS):
        term = term * (square / (2 * k + 1))
        total = total + term
    ratio = square / (2 * NORMAL_TERMS + 1)  # at most 64 / 201
    total = total + _around_0(term * ratio * 2.0)
    value = 0.5 + normal_density(inside) * total
    # Beyond the range, monotony: between the value at its end and 0 or 1.
    return Interval(np.where(x < -NORMAL_RANGE, 0.0, value.low), np.where(x > NORMAL_RANGE, 1.0, value.high))


def _increasing(function: Callable[[np.ndarray], Interval], x: Interval) -> Interval:
    """Enclose an increasing function, from its enclosures at both ends."""
    return Interval(function(x.low).low, function(x.high).high)


def _around_0(size: Interval) -> Interval:
    return Interval(-size.magnitude(), size.magnitude())


def _hull(ends: list[np.ndarray]) -> Interval:
    return _outward(np.minimum.reduce(ends), np.maximum.reduce(ends))


def _outward(low: np.ndarray, high: np.ndarray) -> Interval:
    return Interval(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))


def _rounded(nearest: float) -> Interval:
    """Enclose the number whose nearest float64 this is."""
    end = np.asarray(nearest, dtype=np.float64)
    return _outward(end, end)


LN_2 = _rounded(0.6931471805599453)
INVERSE_ROOT_2_PI = _rounded(0.3989422804014327)
