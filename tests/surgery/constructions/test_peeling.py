"""The promise of the peeling network at the edge of its gap condition, and what happens beyond."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.models.seeds import generator
from manyheads.surgery.constructions import gap_probability, peeling, peeling_budget, peeling_network
from manyheads.theory.softmax import worst_case_scores

# k, T, gap, tolerance
CASES = [
    (1, 1, 1.0, 0.01),
    (1, 64, 1.0, 1e-3),
    (2, 2, 0.1, 0.01),
    (2, 64, 1.0, 0.01),
    (3, 64, 0.1, 1e-3),
    (4, 4, 1 / 3, 1e-3),
    (4, 256, 0.01, 1e-4),
]
EACH = pytest.mark.parametrize(("k", "T", "gap", "tolerance"), CASES)


def rand(seed, *shape):
    return torch.rand(shape, dtype=torch.float64, generator=generator(seed, "peeling"))


def kth_distinct(x, k):
    """The k-th largest distinct value of each row, by sorting."""
    return torch.stack([row.unique()[-k] for row in x])


def errors(network, x, k):
    with torch.no_grad():
        return (network(x[..., None])[:, 0] - kth_distinct(x, k)).abs()


def at_the_edge(k, T, gap, betas, seed=0):
    """Inputs whose first k - 1 gaps are exactly ``gap``, the rest free, tied, or where softmax reads worst."""
    top = 1 - gap * torch.arange(k, dtype=torch.float64)
    top = top.clamp_min(0)
    inputs = []
    for shift in (0.0, float(top[-1])):  # at the top of the range, and at its bottom
        values = top - shift
        x = values[-1] * rand(seed, 12, T)
        x[:, :k] = values
        x[1, k:] = values[-1]  # ties with the answer
        x[2, k:] = 0.0
        for row in range(min(k, 4)):
            x[3 + row, k:] = values[row]  # ties with a value that is peeled
        for row, beta in enumerate(betas):
            x[7 + row, k:] = (values[-1] + worst_case_scores(T + 1, beta)[1]).clamp_min(0)
        inputs.append(x)
    return torch.cat(inputs)


def check(promised, k, T, built=None):
    budget = built or promised
    worst = errors(peeling.pour(budget), at_the_edge(k, T, promised.gap, budget.betas), k).max()
    assert worst <= promised.error_bound, f"error {worst:.3e} above {promised.error_bound:.3e}"
    return float(worst)


@EACH
def test_the_error_keeps_its_bound_at_the_edge_of_the_gap_condition(k, T, gap, tolerance):
    budget = peeling_budget(k, T, gap, tolerance)
    assert budget.error_bound <= tolerance
    check(budget, k, T)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 4), st.integers(0, 40), st.floats(0.005, 0.3), st.floats(-6, -1), st.integers(0, 9999))
def test_any_input_with_gaps(k, more, gap, digits, seed):
    T = k + more
    budget = peeling_budget(k, T, gap, 10**digits)
    spare = 1 - (k - 1) * gap
    cuts = rand(seed, 16, k).sort(dim=1).values * spare
    top = cuts + gap * torch.arange(k, dtype=torch.float64)  # ascending, neighbours at least a gap apart
    rest = top[:, :1] * rand(seed + 1, 16, more)
    copies = top.gather(1, (rand(seed + 2, 16, more) * k).long())
    x = torch.cat([top, torch.where(rand(seed + 3, 16, more) < 0.5, rest, copies)], dim=1)
    x = x.gather(1, rand(seed + 4, 16, T).argsort(1))
    assert errors(peeling.pour(budget), x, k).max() <= budget.error_bound


def test_the_bound_is_nearly_attained():
    budget = peeling_budget(2, 64, 0.1, 0.01)
    assert check(budget, 2, 64) > 0.95 * budget.error_bound


def test_ties_count_once():
    x = torch.tensor([[0.9, 0.9, 0.9, 0.5, 0.5, 0.2, 0.2, 0.1]], dtype=torch.float64)
    for k, value in enumerate((0.9, 0.5, 0.2, 0.1), 1):
        with torch.no_grad():
            answer = peeling_network(k, 8, 0.1, 1e-3)(x[..., None])
        assert answer.item() == pytest.approx(value, abs=1e-3)


def test_the_stream_keeps_every_maximum():
    x = torch.tensor([[0.3, 0.9, 0.1, 0.6]], dtype=torch.float64)
    with torch.no_grad():
        streams, _ = peeling_network(3, 4, 0.2, 1e-4).states(x[..., None])
    found = streams[-1][0, -1, peeling.FIRST_MAXIMUM :]
    assert (found - torch.tensor([0.9, 0.6, 0.3])).abs().max() < 0.1
    assert abs(found[-1] - 0.3) < 1e-4


@pytest.mark.parametrize("k", [2, 3, 4])
def test_without_the_gap_the_answer_is_far_off(k):
    """Two values closer than half the gap are peeled together: the condition is needed, and a finer network heals."""
    gap, tolerance = 0.1, 1e-3
    top = 1 - gap * torch.arange(k, dtype=torch.float64)
    top[1:] += 0.9 * gap  # the first gap is a tenth of what was promised
    x = torch.cat([top, torch.full((8,), 0.1, dtype=torch.float64)])[None]
    assert errors(peeling_network(k, k + 8, gap, tolerance), x, k) > 50 * tolerance
    assert errors(peeling_network(k, k + 8, gap / 10 * 0.999, tolerance), x, k) <= tolerance


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_halved_sharpness_breaks_the_bound(layer):
    """In a layer that peels, values below the maximum are dragged along; in the last, the answer is read too low."""
    budget = peeling_budget(3, 512, 0.1, 1e-3)
    check(budget, 3, 512)
    betas = list(budget.betas)
    betas[layer] /= 2
    with pytest.raises(AssertionError, match="above"):
        check(budget, 3, 512, built=replace(budget, betas=tuple(betas)))


def test_a_wider_ramp_breaks_the_bound():
    budget = peeling_budget(2, 512, 0.1, 1e-3)
    with pytest.raises(AssertionError, match="above"):
        check(budget, 2, 512, built=replace(budget, gap=4 * budget.gap))


def test_the_gap_condition_is_rare_in_long_sequences():
    assert gap_probability(4, 256, 0.01) == pytest.approx(0.97**256)
    assert 1e-4 < gap_probability(4, 256, 0.01) < 1e-3
    assert gap_probability(1, 256, 0.5) == 1
    assert gap_probability(3, 5, 0.6) == 0


@pytest.mark.parametrize(("k", "T", "gap"), [(4, 16, 0.01), (2, 8, 0.1), (3, 2, 0.2)])
def test_its_probability_by_simulation(k, T, gap):
    n, T = 40_000, max(k, T)
    tops = rand(0, n, T).topk(k, dim=1).values
    share = float((tops[:, :-1] - tops[:, 1:] >= gap).all(1).double().mean())
    expected = gap_probability(k, T, gap)
    assert share == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / n))


def test_its_probability_at_the_edges():
    assert gap_probability(3, 2**62, 0) == 1
    assert gap_probability(2, 2**61, 2.0**-61) == pytest.approx(math.exp(-1))  # 1 - gap is 1 in floats
    assert gap_probability(2, 4, 1) == gap_probability(2, 4, 1e300) == 0
    for arguments, message in [
        ((2, 4, -0.1), "gap=-0.1 must be a finite number of at least 0"),
        ((2, 4, math.nan), "gap=nan"),
        ((1, 4, math.inf), "gap=inf"),
        ((5, 4, 0.1), "n_tokens=4 numbers have no 5-th largest; nearest n_tokens: 5"),
    ]:
        with pytest.raises(ValueError, match=message):
            gap_probability(*arguments)


def test_a_maximum_needs_no_gap():
    assert peeling_network(1, 4, 1e-320, 0.1)(torch.tensor([[[0.2], [0.7]]], dtype=torch.float64)) > 0.6


def test_numbers_of_numpy_are_numbers():
    assert peeling_budget(np.int64(3), np.int32(8), np.float64(0.1), np.float32(0.5)) == peeling_budget(3, 8, 0.1, 0.5)


def test_depth_and_width_do_not_depend_on_length_or_tolerance():
    budgets = [peeling_budget(3, T, 0.05, tolerance) for T, tolerance in ((8, 0.1), (4096, 1e-6))]
    assert budgets[0].parameters == budgets[1].parameters
    network = peeling_network(3, 8, 0.05, 0.1)
    assert budgets[0].parameters == sum(p.numel() for p in network.parameters())
    assert network.spec.heads == (1, 1, 1)


def test_it_can_be_built_on_any_device():
    network = peeling_network(3, 8, 0.05, 0.1, device="meta")
    assert network(torch.empty(2, 8, 1, device="meta")).device.type == "meta"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 4, 0.1, 0.1), "k=0"),
        ((2, 1, 0.1, 0.1), "n_tokens=1 numbers have no 2-th largest; nearest n_tokens: 2"),
        ((2, 4, 0.1, 0.0), "tolerance=0.0"),
        ((3, 4, 0.6, 0.1), "gap=0.6 must be at most 0.5 for k=3 values in .*; nearest: 0.5"),
        ((2, 4, 0.0, 0.1), "gap=0.0"),
        ((2, 4, 1e-9, 1e-6), "finer than float64 can promise here"),
        ((2, 4, 1e-320, 0.1), "finer than float64 can promise here .*; no tolerance is enough"),
        ((2, 4, True, 0.1), "gap=True"),
        ((2, 4, math.nan, 0.1), "gap=nan"),
        ((2, 4, "0.1", 0.1), "gap='0.1'"),
        ((2, 4, 1.5, 0.1), "gap=1.5 .* nearest: 1"),
        ((2, 4, 0.1, True), "tolerance=True"),
        ((2, True, 0.1, 0.1), "n_tokens=True"),
        ((10**18, 10**18, 1e-19, 0.1), "finer than float64"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        peeling_network(*arguments)
