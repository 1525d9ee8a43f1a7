import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.theory import patterns


def random_scores(n_tokens, rank, seed):
    generator = torch.Generator().manual_seed(seed)
    left, right = torch.randn(2, n_tokens, rank, generator=generator, dtype=torch.float64)
    return left @ right.mT


def produced(weights, d_head):
    q, k = patterns.queries_and_keys(weights, d_head)
    return (q @ k.mT / math.sqrt(d_head)).softmax(-1)


@given(st.integers(2, 9), st.data())
@settings(deadline=None, max_examples=40)
def test_a_pattern_made_by_a_head_needs_no_larger_head_and_one_of_its_size_makes_it(n_tokens, data):
    rank = data.draw(st.integers(1, n_tokens + 2))
    weights = random_scores(n_tokens, rank, data.draw(st.integers(0, 99))).softmax(-1)
    needed = int(patterns.required_d_head(weights))
    assert needed == min(rank, n_tokens - 1)
    assert torch.allclose(produced(weights, needed), weights, atol=1e-9)


@pytest.mark.parametrize("n_tokens", [3, 8, 32])
def test_the_bound_is_tight_at_its_edge(n_tokens):
    weights = random_scores(n_tokens, n_tokens, 0).softmax(-1)
    assert patterns.divergence(weights, produced(weights, n_tokens - 1)) < 1e-12
    assert patterns.divergence(weights, produced(weights, n_tokens - 2)) > 1e-9


def test_no_smaller_head_can_be_found_by_gradient_descent_either():
    weights = random_scores(6, 6, 1).softmax(-1)
    q, k = (m.contiguous().requires_grad_() for m in patterns.queries_and_keys(weights, 3))
    optimizer = torch.optim.LBFGS([q, k], max_iter=500, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        error = patterns.divergence(weights, (q @ k.mT / math.sqrt(3)).softmax(-1))
        error.backward()
        return error

    optimizer.step(closure)
    assert closure().item() > 1e-4


@given(st.integers(2, 40), st.floats(0.5, 20))
@settings(deadline=None, max_examples=25)
def test_a_gaussian_window_has_rank_two(n_tokens, width):
    i = torch.arange(n_tokens, dtype=torch.float64)
    logs = -((i[:, None] - i) ** 2) / (2 * width**2)
    singular = torch.linalg.svdvals(logs - logs.mean(-1, keepdim=True))
    assert (singular[2:] <= 1e-12 * singular[0]).all()


@pytest.mark.parametrize("n_tokens", [2, 5, 40])
def test_an_exponential_window_has_full_rank(n_tokens):
    i = torch.arange(n_tokens, dtype=torch.float64)
    assert patterns.required_d_head((-(i[:, None] - i).abs() / 4).softmax(-1), 1e-12) == n_tokens - 1


TYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])


@TYPES
@pytest.mark.parametrize("n_tokens", [2, 16, 64])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_the_count_survives_the_rounding_of_weights(n_tokens, rank, dtype):
    rank = min(rank, n_tokens - 1)
    weights = (random_scores(n_tokens, rank, 0) / 4).softmax(-1)
    assert patterns.required_d_head(weights.to(dtype)) == rank


@TYPES
@pytest.mark.parametrize("n_tokens", [1, 2, 5, 64, 257])
def test_uniform_attention_needs_nothing(n_tokens, dtype):
    assert patterns.required_d_head(torch.full((n_tokens, n_tokens), 1 / n_tokens, dtype=dtype)) == 0


def test_a_tolerance_may_be_chosen():
    i = torch.arange(24, dtype=torch.float64)
    window = (-(i[:, None] - i).abs() / 4).softmax(-1)
    needed = [int(patterns.required_d_head(window, tolerance)) for tolerance in (0, 1e-12, np.float32(0.1), 1)]
    assert needed == sorted(needed, reverse=True)
    assert needed[1] == 23
    assert needed[-1] == 0


@TYPES
def test_queries_and_keys_keep_the_type_of_the_pattern(dtype):
    weights = (random_scores(6, 2, 0) / 4).softmax(-1).to(dtype)
    q, k = patterns.queries_and_keys(weights, 2)
    assert q.dtype == k.dtype == dtype
    made = (q.double() @ k.double().mT / math.sqrt(2)).softmax(-1)
    assert (made - weights.double()).abs().max() < 20 * torch.finfo(dtype).eps


def test_batches_are_independent():
    weights = torch.stack([random_scores(5, rank, 2).softmax(-1) for rank in (1, 2, 3)])
    assert patterns.required_d_head(weights).tolist() == [1, 2, 3]
    for one, alone in zip(produced(weights, 2), weights, strict=True):
        assert torch.allclose(one, produced(alone, 2))


@given(st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_divergence_is_zero_for_equal_and_positive_for_other_patterns(seed):
    p, q = (random_scores(4, 4, seed + i).softmax(-1) for i in (0, 100))
    assert patterns.divergence(p, p).abs() < 1e-12
    assert patterns.divergence(p, q) > 0


def test_divergence_stays_finite_where_a_weight_underflows():
    p = torch.full((2, 2), 0.5)
    for target, weights in [(p, torch.eye(2)), (torch.eye(2), p)]:
        for types in product([torch.float16, torch.float32, torch.float64], repeat=2):
            found = patterns.divergence(target.to(types[0]), weights.to(types[1]))
            assert torch.isfinite(found)
            assert found > 0.5


def test_it_runs_without_numbers():
    weights = torch.empty(3, 4, 4, device="meta")
    assert patterns.centred_log(weights).shape == (3, 4, 4)
    assert patterns.divergence(weights, weights).device.type == "meta"
    assert patterns.required_d_head(weights).shape == (3,)
    assert [part.shape for part in patterns.queries_and_keys(weights, 2)] == [(3, 4, 2)] * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: patterns.required_d_head(torch.eye(3)), "must all be positive"),
        (lambda: patterns.required_d_head(torch.ones(2, 3)), r"shape \(2, 3\)"),
        (lambda: patterns.required_d_head(torch.tensor(1.0)), r"shape \(\)"),
        (lambda: patterns.required_d_head(torch.full((2, 2), math.nan)), "must all be positive"),
        (lambda: patterns.required_d_head(torch.full((2, 2), math.inf)), "must all be positive and finite"),
        (lambda: patterns.required_d_head(torch.ones(2, 2, dtype=torch.int64)), "weights has type torch.int64"),
        (lambda: patterns.required_d_head(torch.ones(2, 2), -1), "relative_tolerance=-1 must be a finite number"),
        (lambda: patterns.required_d_head(torch.ones(2, 2), math.nan), "relative_tolerance=nan"),
        (lambda: patterns.queries_and_keys(torch.full((3, 3), 1 / 3), 1.5), "d_head=1.5"),
        (lambda: patterns.queries_and_keys(torch.full((3, 3), 1 / 3), True), "d_head=True"),
        (lambda: patterns.queries_and_keys(torch.full((3, 3), 1 / 3), 4), "d_head=4 must lie between 1 and T=3"),
        (lambda: patterns.queries_and_keys(torch.full((3, 3), 1 / 3), 0), "d_head=0"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
