"""Checks of arguments. Each returns the clean value, or raises a ``ValueError`` that names the nearest valid choice."""

from __future__ import annotations

import math
from numbers import Integral, Real


def positive_int(name: str, value: object) -> int:
    """Return ``value`` as a plain ``int`` of at least 1; ``True``, ``8.0`` and ``"8"`` are refused."""
    if isinstance(value, Integral) and not isinstance(value, bool) and value >= 1:
        return int(value)  # a numpy integer becomes one that JSON can write
    finite = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    nearest = f"; nearest: {max(1, round(value))}" if finite else ""
    raise ValueError(f"{name}={value!r} must be a positive integer{nearest}")


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
