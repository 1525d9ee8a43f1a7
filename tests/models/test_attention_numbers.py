"""Numbers at the edge of their type, numbers that are none, derivatives of every order, and traces: on both paths."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from manyheads.models import Attention, AttentionSpec, attention
from manyheads.models.seeds import generator
from tests.models.test_attention import BATCH, SPECS, TOKENS, every_full_spec, layer, masks, tokens

TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def identity_head(d_model, **options) -> Attention:
    module = Attention(AttentionSpec(d_model, 1, **options))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.eye(d_model))
    return module


@pytest.mark.parametrize("size", [38.0, 300.0, 6e4])  # inner products of 9e4, 6e6, 2e11; float16 ends at 65,504
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"position": "alibi"}])
def test_scores_beyond_float16_are_as_finite_as_on_the_fast_path(size, options):
    module, x = identity_head(64, **options), torch.full((1, 3, 64), size)
    with torch.autocast("cpu", torch.float16):
        y_autocast, weights_autocast = module(x, return_weights=True)
        torch.testing.assert_close(module(x), y_autocast)
    y, weights = module.half()(x.half(), return_weights=True)
    torch.testing.assert_close(module(x.half()), y)
    assert y.dtype == weights.dtype == torch.float16
    for w in (weights, weights_autocast):
        torch.testing.assert_close(w.float().sum(-1), torch.ones(1, 1, 3), rtol=0, atol=1e-3)
    for output in (y, y_autocast):
        torch.testing.assert_close(output.float(), x, rtol=2e-3, atol=0)


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(TYPES),
    st.sampled_from([(1, 1), (3, 3), (64, 64), (8, 3)]),
    st.floats(-0.2, 1.0),
    st.floats(-0.2, 1.0),
    st.booleans(),
    st.integers(0, 999),
)
def test_the_reference_path_is_finite_wherever_the_fast_one_is(dtype, sizes, q_share, k_share, causal, seed):
    """Queries and keys of any size that the type can hold, as a share of its exponents."""
    draw = torch.randn(3, 1, 2, 5, 64, dtype=torch.float64, generator=generator(seed, "scales"))
    largest, (d_head, d_value) = math.log10(torch.finfo(dtype).max / 8), sizes
    q, k = (10.0 ** (share * largest) * draw[i, ..., :d_head] for i, share in enumerate((q_share, k_share)))
    q, k, v = (part.to(dtype) for part in (q, k, draw[2, ..., :d_value]))
    wide = torch.finfo(torch.promote_types(dtype, torch.float32))  # what kernels compute in
    largest_score = float((q.double().abs() / math.sqrt(d_head) @ k.double().abs().mT).max())
    assume(largest_score < wide.max)

    fast = attention.mix_fast(q, k, v, causal=causal)
    read, weights = attention.mix_reference(q, k, v, causal=causal)
    assert weights.isfinite().all()
    assert read.isfinite().all()
    # Scores are rounded relative to their size, so large ones leave the weights of near ties open.
    tolerance = 32 * torch.finfo(dtype).eps + 16 * d_head * wide.eps * largest_score
    if tolerance < 0.5 and fast.isfinite().all():
        torch.testing.assert_close(read, fast, rtol=0, atol=tolerance)


@every_full_spec
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_a_token_may_not_see_is_no_part_of_its_sum(spec, bad):
    """One token without a value, seen by some and not by others: nobody else may notice, and all who see it must."""
    module, x = layer(spec), tokens(spec)
    lost = x.clone()
    lost[:, 3] = bad
    for mask in masks().values():
        allowed = attention.may_attend(mask, spec.causal, TOKENS, "cpu").expand(BATCH, -1, -1, -1)[:, 0]
        sees = allowed[..., 3].clone()
        sees[:, 3] |= allowed[:, 3].any(-1)  # its own query has no value either
        assert sees.any()
        assert not sees.all()
        y, weights = module(lost, mask, return_weights=True)
        y_clean, weights_clean = module(x, mask, return_weights=True)
        assert torch.equal(y[~sees], y_clean[~sees])
        assert torch.equal(weights.transpose(1, 2)[~sees], weights_clean.transpose(1, 2)[~sees])
        assert not y[sees].isfinite().any()
        assert not weights[~allowed[:, None].expand_as(weights)].any()
        # The fast path may lose a row, as its docstring says, but it never makes up a number.
        fast = module(lost, mask)[~sees]
        assert (fast.isnan() | ((fast - y_clean[~sees]).abs() < 1e-12)).all()


@pytest.mark.parametrize("name", ["none-grouped-bias", "partial-rope-one-key-gain-d_value", "alibi-latent-norm-causal"])
def test_the_readable_path_has_derivatives_of_second_order_and_in_forward_mode(name):
    spec = SPECS[name]
    module, x = layer(spec), tokens(spec)[:, :3].requires_grad_()
    names, parameters = zip(*module.named_parameters(), strict=True)

    def y(x, *parameters):
        arguments = (x, masks(3)["per-sequence"], False, True)
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), arguments)

    assert torch.autograd.gradcheck(y, (x, *parameters), fast_mode=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(y, (x, *parameters), fast_mode=True, check_fwd_over_rev=True)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("name", ["none-grouped", "alibi-one-key-causal", "rope-plain-gain"])
def test_a_traced_layer_gives_the_same_numbers(name, reference):
    module, x = layer(SPECS[name]).requires_grad_(False), tokens(SPECS[name])
    traced = torch.jit.trace(lambda x: module(x, reference=reference), x)
    torch.testing.assert_close(traced(2 * x), module(2 * x, reference=reference), rtol=0, atol=0)
