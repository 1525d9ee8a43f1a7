import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from manyheads.theory import softmax

TOKENS = st.integers(1, 300)
BETAS = st.floats(0.01, 200)
RANGES = st.one_of(st.just(math.inf), st.floats(0.01, 50))


def error(values, beta):
    """max - softmax average, in the numerically kind form."""
    gaps = values.max() - values
    weights = (-beta * gaps).softmax(-1)
    return float((weights * gaps).sum())


@pytest.mark.parametrize(("beta", "expected"), [(5, 0.461426), (50, 0.0461426), (500, 0.00461426)])
def test_the_published_values_at_64_tokens(beta, expected):
    assert softmax.retrieval_error_bound(64, beta) == pytest.approx(expected, rel=2e-6)


def test_two_tokens_and_a_bounded_range():
    assert softmax.retrieval_error_bound(2, 5) == pytest.approx(0.0556929, rel=2e-6)
    assert softmax.retrieval_error_bound(64, 2, value_range=1) == pytest.approx(0.895, abs=5e-4)


@given(TOKENS, BETAS, RANGES)
@settings(deadline=None)
def test_the_worst_case_attains_the_bound_at_its_edge(n_tokens, beta, value_range):
    bound = softmax.retrieval_error_bound(n_tokens, beta, value_range)
    values = softmax.worst_case_scores(n_tokens, beta, value_range)
    assert error(values, beta) == pytest.approx(bound, rel=1e-9, abs=1e-15)
    assert values.max() - values.min() <= value_range


@given(st.integers(2, 40), BETAS, RANGES, st.integers(0, 9999))
@settings(deadline=None)
def test_random_values_stay_below_the_bound(n_tokens, beta, value_range, seed):
    generator = torch.Generator().manual_seed(seed)
    scale = min(value_range, 10 / beta)
    values = scale * torch.rand(n_tokens, generator=generator, dtype=torch.float64)
    assert error(values, beta) <= softmax.retrieval_error_bound(n_tokens, beta, value_range) * (1 + 1e-12)


@pytest.mark.parametrize("n_tokens", [2, 3, 8])
@pytest.mark.parametrize("value_range", [0.5, 1.0, 2.5, math.inf])
def test_an_optimiser_cannot_beat_the_bound_and_reaches_it(n_tokens, value_range):
    """Adversarial search over all values, from several starts, in both branches."""
    best = 0.0
    for seed in range(4):
        start = torch.rand(n_tokens - 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).numpy()
        found = minimize(
            lambda gaps: -error(-torch.cat([torch.zeros(1, dtype=torch.float64), torch.tensor(gaps)]), 1.0),
            start,
            bounds=[(0, value_range)] * (n_tokens - 1),
        )
        best = max(best, -found.fun)
    bound = softmax.retrieval_error_bound(n_tokens, 1.0, value_range)
    assert best <= bound * (1 + 1e-9)
    assert best == pytest.approx(bound, rel=1e-5)


@given(st.integers(2, 300), st.floats(1e-4, 10), RANGES)
@settings(deadline=None)
def test_the_inverse_gives_the_smallest_sharpness(n_tokens, tolerance, value_range):
    beta = softmax.sharpness_for(n_tokens, tolerance, value_range)
    assert softmax.retrieval_error_bound(n_tokens, beta, value_range) <= tolerance * (1 + 1e-9)
    if beta:
        assert softmax.retrieval_error_bound(n_tokens, beta, value_range) == pytest.approx(tolerance, rel=1e-6)


@given(st.integers(2, 300), st.floats(0.01, 100))
@settings(deadline=None)
def test_the_two_branches_meet(n_tokens, beta):
    edge = softmax._worst_gap(n_tokens) / beta
    below, above = (softmax.retrieval_error_bound(n_tokens, beta, edge * f) for f in (1 - 1e-9, 1 + 1e-9))
    assert below == pytest.approx(above, rel=1e-6)


@given(st.integers(2, 300), st.floats(0.01, 100), st.floats(0.01, 100), RANGES)
@settings(deadline=None)
def test_sharper_is_never_worse(n_tokens, beta, more, value_range):
    bound = softmax.retrieval_error_bound
    assert bound(n_tokens, beta + more, value_range) <= bound(n_tokens, beta, value_range) * (1 + 1e-12)


def test_one_token_is_always_read_exactly():
    for beta in (0, 1, 1e6):
        assert softmax.retrieval_error_bound(1, beta) == 0
    assert softmax.sharpness_for(1, 1e-9) == 0
    assert softmax.gap_error_bound(1, 0, 5) == softmax.gap_for(1, 1e-9, 5) == 0
    assert softmax.worst_case_scores(1, 2.0).tolist() == [0]


def test_no_sharpness_means_the_mean():
    assert softmax.retrieval_error_bound(4, 0, 1) == pytest.approx(3 / 4)
    assert softmax.retrieval_error_bound(4, 0) == math.inf


def test_huge_gaps_do_not_overflow():
    assert softmax.gap_error_bound(8, 5000, 1) == 0
    assert softmax.retrieval_error_bound(8, 1e6, 1e6) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(
    ("gap", "value_range", "bound"),
    [
        (1000, math.inf, math.inf),  # whatever the gap, some value is large enough
        (0, math.inf, math.inf),
        (math.inf, 1, 0),  # all weight is on the winner
        (math.inf, math.inf, 0),
        (math.inf, 0, 0),
        (1000, 0, 0),
        (0, 1, 1 / 2),
    ],
)
def test_gaps_and_ranges_without_end(gap, value_range, bound):
    assert softmax.gap_error_bound(2, gap, value_range) == bound
    assert softmax.gap_error_bound(1, gap, value_range) == 0


@pytest.mark.parametrize(("beta", "value_range", "bound"), [(math.inf, 1, 0), (math.inf, math.inf, 0), (0, 0, 0)])
def test_sharpness_without_end(beta, value_range, bound):
    assert softmax.retrieval_error_bound(8, beta, value_range) == bound


def test_what_no_finite_gap_or_sharpness_can_reach():
    assert softmax.gap_for(8, 0.1, math.inf) == math.inf
    assert softmax.sharpness_for(8, 0.1, math.inf) == pytest.approx(softmax.sharpness_for(8, 0.1, 1e9), rel=1e-6)


def exactly(n_tokens, gap, value_range):
    """The bound in fifty digits, whose exponents have no end."""
    with localcontext(prec=50, Emin=-(10**9)):
        share = (n_tokens - 1) * (-Decimal(gap)).exp()
        return float(Decimal(value_range) * share / (1 + share))


@given(st.integers(2, 2**62), st.floats(0, 1400), st.floats(1e-300, 1e308))
@settings(deadline=None)
def test_nothing_is_lost_between_a_wide_range_and_a_large_gap(n_tokens, gap, value_range):
    bound = softmax.gap_error_bound(n_tokens, gap, value_range)
    assert bound == pytest.approx(exactly(n_tokens, gap, value_range), rel=1e-12, abs=1e-307)
    assume(1e-300 < bound < value_range / 2)
    assert softmax.gap_for(n_tokens, bound, value_range) == pytest.approx(gap, rel=1e-12, abs=1e-12)


@given(st.integers(2, 2**62), st.floats(5e-324, 1e308), st.floats(0, 1e308))
@settings(deadline=None)
def test_numbers_of_any_size_give_numbers(n_tokens, positive, value_range):
    for found in (
        softmax.retrieval_error_bound(n_tokens, positive, value_range),
        softmax.gap_for(n_tokens, positive, value_range),
        softmax.gap_error_bound(n_tokens, positive, value_range),
        softmax.sharpness_for(n_tokens, positive, value_range),
        softmax.visibility_bound(positive, value_range, positive, value_range),
    ):
        assert found >= 0  # neither NaN nor below
    assert softmax.retrieval_error_bound(n_tokens, positive, value_range) <= value_range


def test_visibility_at_its_edges():
    assert softmax.visibility_bound(0, 5, 2, 3) == 13
    assert softmax.visibility_bound(1, 0, 2, 3) == 3
    assert softmax.visibility_bound(1, 1e200, 1e200) == 0  # e^(-1e200) wins against 1e400
    assert softmax.visibility_bound(1e-3, 1e6, 1e300) == pytest.approx(math.exp(306 * math.log(10) - 1000), rel=1e-12)


@given(st.integers(2, 60), st.floats(0, 30), st.floats(0.01, 10), st.integers(0, 999))
@settings(deadline=None)
def test_a_score_gap_bounds_the_error_of_any_value_and_is_sharp(n_tokens, gap, value_range, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = -gap - torch.rand(n_tokens, generator=generator, dtype=torch.float64) * 3
    scores[0] = 0
    values = value_range * torch.rand(n_tokens, generator=generator, dtype=torch.float64)
    bound = softmax.gap_error_bound(n_tokens, gap, value_range)
    assert abs(scores.softmax(-1) @ values - values[0]) <= bound * (1 + 1e-12)
    scores[1:], values[:] = -gap, value_range
    values[0] = 0
    assert float(scores.softmax(-1) @ values) == pytest.approx(bound, rel=1e-9)
    assume(bound > 1e-12)
    assert softmax.gap_for(n_tokens, bound, value_range) == pytest.approx(gap, abs=1e-5)


@given(st.integers(2, 20), st.floats(0.1, 40), st.integers(0, 999))
@settings(deadline=None)
def test_a_value_below_the_maximum_fades_at_least_as_fast_as_stated(n_tokens, beta, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n_tokens, generator=generator, dtype=torch.float64).requires_grad_()
    y = (beta * x).softmax(-1) @ torch.sin(3 * x)
    (slopes,) = torch.autograd.grad(y, x)
    gaps = (x.max() - x).tolist()
    for gap, slope in zip(gaps, slopes.tolist(), strict=True):
        assert abs(slope) <= softmax.visibility_bound(gap, beta, value_range=2, slope=3) * (1 + 1e-9)


def test_numbers_of_numpy_are_numbers():
    plain = softmax.retrieval_error_bound(8, 0.5, 2.0)
    assert softmax.retrieval_error_bound(np.int64(8), np.float32(0.5), np.float64(2)) == plain
    values = softmax.worst_case_scores(8, np.float32(0.5), device="meta", dtype=torch.float32)
    assert values.is_meta


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: softmax.retrieval_error_bound(0, 1), "n_tokens"),
        (lambda: softmax.retrieval_error_bound(4, -1), "beta=-1 must be at least 0"),
        (lambda: softmax.retrieval_error_bound(4, math.nan), "beta=nan"),
        (lambda: softmax.retrieval_error_bound(4, 1, -2), "value_range=-2"),
        (lambda: softmax.sharpness_for(4, 0), "tolerance=0 must be a finite number above 0"),
        (lambda: softmax.worst_case_scores(4, 0), "beta=0"),
        (lambda: softmax.gap_for(4, -1, 1), "tolerance=-1"),
        (lambda: softmax.gap_error_bound(4, -1, 1), "gap=-1"),
        (lambda: softmax.gap_error_bound(4, math.nan, 1), "gap=nan must be at least 0"),
        (lambda: softmax.gap_error_bound(4, True, 1), "gap=True"),
        (lambda: softmax.gap_error_bound(4.0, 1, 1), "n_tokens=4.0 must be a positive integer; nearest: 4"),
        (lambda: softmax.gap_for(10**400, 1, 1), "n_tokens=1000"),
        (lambda: softmax.retrieval_error_bound(4, "1"), "beta='1'"),
        (lambda: softmax.retrieval_error_bound(4, 1, math.nan), "value_range=nan"),
        (lambda: softmax.sharpness_for(4, math.inf), "tolerance=inf must be a finite number above 0"),
        (lambda: softmax.worst_case_scores(4, math.inf), "beta=inf"),
        (lambda: softmax.worst_case_scores(4, 1e-320), "beta=1e-320.* beyond every float"),
        (lambda: softmax.visibility_bound(math.inf, 0, 1), "gap=inf must be a finite number of at least 0"),
        (lambda: softmax.visibility_bound(0, math.inf, 1), "beta=inf"),
        (lambda: softmax.visibility_bound(1, 1, math.inf), "value_range=inf"),
        (lambda: softmax.visibility_bound(1, 1, 1, -1), "slope=-1"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
