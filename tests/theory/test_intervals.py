"""Intervals hold the exact result: fractions and fifty digits are the judges, and too tight an enclosure is caught."""

import operator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.theory import intervals
from manyheads.theory.intervals import Interval, exact

finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-40, 40)


def interval(ends):
    return Interval(*np.sort(np.array(ends, dtype=np.float64)))


def holds(enclosure, value):
    """Whether an enclosure holds a value, both exact."""
    low, high = (Fraction(float(end)) if np.isfinite(end) else end for end in (enclosure.low, enclosure.high))
    return low <= value <= high


@given(st.tuples(finite, finite), st.tuples(finite, finite), st.sampled_from(["add", "sub", "mul", "truediv"]))
def test_an_operation_on_members_lies_in_the_operation_on_intervals(first, second, name):
    operation = getattr(operator, name)
    with np.errstate(all="ignore"):
        found = operation(interval(first), interval(second))
    for a in first:
        for b in second:
            if name == "truediv" and b == 0:
                continue
            assert holds(found, operation(Fraction(a), Fraction(b)))


@given(st.tuples(moderate, moderate), st.tuples(moderate, moderate), st.floats(0, 1), st.floats(0, 1))
def test_a_product_holds_what_lies_inside(first, second, s, t):
    inside = [
        Fraction(min(ends)) * (1 - Fraction(u)) + Fraction(max(ends)) * Fraction(u)
        for ends, u in ((first, s), (second, t))
    ]
    assert holds(interval(first) * interval(second), inside[0] * inside[1])


def test_a_quotient_by_an_interval_around_0_says_nothing():
    with np.errstate(all="ignore"):
        found = exact([1.0, 1.0]) / Interval(np.array([-1.0, 0.0]), np.array([1.0, 1.0]))
    assert found.low.tolist() == [-np.inf] * 2
    assert found.high.tolist() == [np.inf] * 2


def test_products_of_matrices_and_sums_hold_the_exact_ones():
    draws = np.random.default_rng(0)
    a, b = draws.normal(size=(2, 3, 7)) * 1e8, draws.normal(size=(7, 4)) * 1e-8
    found, plain = exact(a) @ b, a @ exact(b)
    total = exact(a).sum(1)
    for index in np.ndindex(2, 3, 4):
        i, m, n = index
        value = sum(Fraction(x) * Fraction(y) for x, y in zip(a[i, m], b[:, n], strict=True))
        assert holds(found[index], value)
        assert holds(plain[index], value)
        assert holds(total[i, n], sum(map(Fraction, a[i, :, n])))
    assert (found.high - found.low).max() < 1e-14


def test_numbers_and_arrays_may_stand_on_either_side():
    x = interval((1.0, 2.0))
    array = np.array([3.0, 4.0])
    for found, low, high in ((array - x, [1, 2], [2, 3]), (array * x, [3, 4], [6, 8]), (array + x, [4, 5], [5, 6])):
        assert np.allclose(found.low, low)
        assert np.allclose(found.high, high)


FUNCTIONS = {
    "exp": (intervals.exp, mpmath.exp),
    "normal_density": (intervals.normal_density, mpmath.npdf),
    "normal_cdf": (intervals.normal_cdf, mpmath.ncdf),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(st.tuples(moderate, moderate), st.floats(0, 1))
def test_a_function_of_members_lies_in_its_enclosure(name, ends, u):
    enclosure, function = FUNCTIONS[name]
    found = enclosure(interval(ends))
    with mpmath.workdps(60):
        low, high = map(mpmath.mpf, sorted(ends))
        for x in (low, high, low + (high - low) * mpmath.mpf(u)):
            assert found.low <= function(x) <= found.high


@pytest.mark.parametrize("name", FUNCTIONS)
def test_enclosures_of_functions_are_tight(name):
    enclosure, function = FUNCTIONS[name]
    x = np.linspace(-6, 6, 401)
    found = enclosure(exact(x))
    with mpmath.workdps(60):
        for at, low, high in zip(x, found.low, found.high, strict=True):
            value = function(mpmath.mpf(at))
            assert low <= value <= high
            assert high - low < 1e-13 * max(value, 1)


def test_the_distribution_agrees_with_erf():
    x = np.linspace(-9, 9, 200)
    found = intervals.normal_cdf(exact(x))
    with mpmath.workdps(60):
        for at, low, high in zip(x, found.low, found.high, strict=True):
            assert low <= (1 + mpmath.erf(mpmath.mpf(at) / mpmath.sqrt(2))) / 2 <= high


@given(st.floats(0, 1e300))
def test_a_root_lies_in_its_enclosure(number):
    found = intervals.root(number)
    assert max(Fraction(float(found.low)), 0) ** 2 <= Fraction(number) <= Fraction(float(found.high)) ** 2


def test_constants_hold_what_they_stand_for():
    with mpmath.workdps(60):
        assert intervals.LN_2.low < mpmath.log(2) < intervals.LN_2.high
        assert intervals.INVERSE_ROOT_2_PI.low < 1 / mpmath.sqrt(2 * mpmath.pi) < intervals.INVERSE_ROOT_2_PI.high


def test_far_out_an_enclosure_is_wide_and_still_true():
    with np.errstate(all="ignore"):
        found = intervals.exp(exact([-1e6, -745.5, 709.9, 1e6]))
    assert (found.low >= 0).all()
    assert found.high[:2].max() < 1e-300
    assert np.isinf(found.high[2:]).all()
    assert np.isfinite(found.low).all()
    found = intervals.normal_cdf(exact([-50.0, 50.0]))
    assert found.low[0] == 0
    assert found.high[1] == 1
    assert (found.high - found.low).max() < 1e-12


def test_an_enclosure_without_outward_rounding_is_caught(monkeypatch):
    """The planted fault: ends as float64 rounds them."""
    monkeypatch.setattr(intervals, "_outward", Interval)
    assert not holds(exact(0.1) + 0.2, Fraction(0.1) + Fraction(0.2))
