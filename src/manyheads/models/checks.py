"""Checks of arguments. Each returns the clean value, or raises a ``ValueError`` that names the nearest valid choice."""

from __future__ import annotations

import math
import sys
from numbers import Integral, Real

LARGEST_INT = 2**63 - 1
"""The largest size a tensor can have."""


def positive_int(name: str, value: object) -> int:
    """Return ``value`` as a plain ``int`` from 1 to 2^63 - 1; ``True``, ``8.0`` and ``"8"`` are refused."""
    if isinstance(value, Integral) and not isinstance(value, bool) and 1 <= int(value) <= LARGEST_INT:
        return int(value)  # a numpy integer becomes one that JSON can write
    number = _real(value)
    nearest = f"; nearest: {min(max(1, round(number)), LARGEST_INT)}" if math.isfinite(number) else ""
    raise ValueError(f"{name}={value!r} must be a positive integer{nearest}")


def above_zero(name: str, value: object) -> float:
    """Return ``value`` as a plain ``float``, finite and above 0; ``True``, ``"1"``, NaN and tensors are refused."""
    number = _real(value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name}={value!r} must be a finite number above 0, for example 0.01")
    return number


def at_least_zero(name: str, value: object, infinite: bool = False) -> float:
    """Return ``value`` as a plain ``float`` of at least 0; only with ``infinite`` may it be infinite."""
    number = _real(value)
    if not (0 <= number < math.inf or (infinite and number == math.inf)):
        wanted = "at least 0" if infinite else "a finite number of at least 0"
        nearest = f"{sys.float_info.max:g}" if number == math.inf else "0"
        raise ValueError(f"{name}={value!r} must be {wanted}; nearest: {nearest}")
    return number


def _real(value: object) -> float:
    """A real number as a ``float``, infinite beyond what that can hold; NaN for everything else."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # an int has no bounds
        return -math.inf if value < 0 else math.inf


def flag(name: str, value: object) -> bool:
    """Return ``value`` if it is ``True`` or ``False``."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}={value!r} must be True or False")
    return value


def divisor(name: str, value: object, of_name: str, of: int, otherwise: str = "") -> int:
    """Return ``value`` if it divides ``of``.

    ``otherwise`` is one more way out, added to the message: "or give d_head".
    """
    value = positive_int(name, value)
    if of % value:
        nearest = ", ".join(map(str, nearest_divisors(value, of)))
        way_out = f"; {otherwise}" if otherwise else ""
        raise ValueError(f"{name}={value} does not divide {of_name}={of}; nearest divisors: {nearest}{way_out}")
    return value


def divisors(number: int) -> tuple[int, ...]:
    """All divisors of ``number``, ascending."""
    small = [k for k in range(1, math.isqrt(number) + 1) if number % k == 0]
    return tuple(sorted({*small, *(number // k for k in small)}))


def nearest_divisors(value: float, of: int) -> tuple[int, ...]:
    """The largest divisor of ``of`` up to ``value`` and the smallest one from it on: one entry if there is but one."""
    below = [k for k in divisors(of) if k <= value][-1:]
    above = [k for k in divisors(of) if k >= value][:1]
    return tuple(sorted({*below, *above}))
