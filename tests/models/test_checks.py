import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyheads.models.checks import (
    above_zero,
    at_least_zero,
    divisor,
    divisors,
    flag,
    nearest_divisors,
    positive_int,
)


@pytest.mark.parametrize("value", [0, -3, True, 8.0, "8", None, float("nan"), float("inf"), [8]])
def test_only_positive_integers_pass(value):
    with pytest.raises(ValueError, match=r"n_heads=.* must be a positive integer"):
        positive_int("n_heads", value)


def test_numpy_integers_become_plain_ones():
    assert type(positive_int("n_heads", np.int64(8))) is int


@pytest.mark.parametrize(("value", "nearest"), [(0, 1), (-3, 1), (7.9, 8), (np.float32(2.6), 3), (10**30, 2**63 - 1)])
def test_the_nearest_positive_integer_is_named(value, nearest):
    with pytest.raises(ValueError, match=f"nearest: {nearest}$"):
        positive_int("n_heads", value)


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_integers_beyond_every_float_are_refused_too(value):
    for check in (positive_int, above_zero, at_least_zero):
        with pytest.raises(ValueError, match=r"beta=-?1000"):
            check("beta", value)


@pytest.mark.parametrize("value", [-1, True, "1", None, math.nan, -math.inf, [1.0], torch.tensor(1.0)])
def test_only_numbers_that_are_not_negative_pass(value):
    for check in (above_zero, at_least_zero):
        with pytest.raises(ValueError, match=r"beta=.* must be "):
            check("beta", value)


@pytest.mark.parametrize("value", [3, 0.5, np.float32(0.5), np.int64(7), Fraction(1, 3), 5e-324, 1e308])
def test_numbers_become_plain_floats(value):
    for check in (above_zero, at_least_zero):
        assert type(check("beta", value)) is float
        assert check("beta", value) == float(value)


def test_zero_and_infinity_pass_where_they_may():
    assert at_least_zero("gap", 0) == 0
    assert at_least_zero("gap", math.inf, infinite=True) == math.inf
    with pytest.raises(ValueError, match=r"gap=inf must be a finite number of at least 0; nearest: 1.79769e\+308"):
        at_least_zero("gap", math.inf)
    with pytest.raises(ValueError, match="gap=-1 must be at least 0; nearest: 0"):
        at_least_zero("gap", -1, infinite=True)
    for value in (0, math.inf):
        with pytest.raises(ValueError, match=f"gap={value} must be a finite number above 0"):
            above_zero("gap", value)


@pytest.mark.parametrize("value", [0, 1, None, "yes"])
def test_flags_are_true_or_false(value):
    with pytest.raises(ValueError, match=r"causal=.* must be True or False"):
        flag("causal", value)


@given(st.integers(1, 5000))
def test_divisors_are_exactly_the_divisors(number):
    assert divisors(number) == tuple(k for k in range(1, number + 1) if number % k == 0)


@given(st.integers(1, 6000), st.integers(1, 5000))
def test_nearest_divisors_enclose_the_value(value, of):
    nearest = nearest_divisors(value, of)
    assert set(nearest) <= set(divisors(of))
    if of % value == 0:
        assert nearest == (value,)
    else:
        assert not [k for k in divisors(of) if min(nearest) < k < max(nearest)]
        assert min(nearest) < value
        assert max(nearest) > value or max(nearest) == of


def test_divisor_names_both_values_and_the_way_out():
    with pytest.raises(
        ValueError, match="n_heads=5 does not divide d_model=768; nearest divisors: 4, 6; or give d_head"
    ):
        divisor("n_heads", 5, "d_model", 768, otherwise="or give d_head")
