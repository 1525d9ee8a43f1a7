"""Numbers for readers: powers of ten with raised digits and a true minus, as plain characters that work everywhere."""

from __future__ import annotations

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(exponent: int, base: int = 10) -> str:
    """Return ``base`` to the power of ``exponent`` with raised characters.

    >>> power(-12)
    '10⁻¹²'
    """
    return f"{base}{str(int(exponent)).translate(_RAISED)}"


def number(value: float, digits: int = 3) -> str:
    """Return ``value`` to so many significant digits, without the ``e`` of programming languages.

    >>> number(-0.25), number(1e-9), number(1234567)
    ('−0.25', '10⁻⁹', '1.23×10⁶')
    """
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    if not exponent:
        return mantissa.replace("-", "−")
    factor = {"1": "", "-1": "-"}.get(mantissa, f"{mantissa}×")
    return factor.replace("-", "−") + power(int(exponent))
