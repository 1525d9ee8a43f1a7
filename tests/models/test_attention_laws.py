"""Laws of attention: what must hold for any weights, and limits with a closed form."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.models import Attention, AttentionSpec
from manyheads.models.seeds import generator, initialise
from tests.models import legal

SPECS = legal.specs()
names = st.sampled_from(sorted(SPECS))
seeds = st.integers(0, 2**16)
light = settings(deadline=None, max_examples=40)


def build(spec, seed=0, dtype=torch.float64):
    return initialise(Attention(spec, dtype=dtype), seed)


def draw(seed, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=generator(seed, "laws"))


@light
@given(names, seeds, st.integers(1, 9), st.booleans())
def test_rows_sum_to_one_or_to_zero_and_forbidden_weights_are_exactly_zero(name, seed, n_tokens, masked):
    spec = SPECS[name]
    mask = (draw(seed, 3, n_tokens, n_tokens) > 0.3) if masked else None
    _, weights = build(spec, seed)(draw(seed, 3, n_tokens, 10), mask, return_weights=True)
    allowed = torch.ones(3, n_tokens, n_tokens, dtype=torch.bool) if mask is None else mask
    allowed = (allowed.tril() if spec.causal else allowed)[:, None].expand_as(weights)
    assert (weights[~allowed] == 0).all()
    assert (weights[allowed] > 0).all()
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).double(), rtol=0, atol=1e-14)


@light
@given(st.sampled_from(sorted(name for name in SPECS if SPECS[name].causal)), seeds, st.integers(1, 8))
def test_a_causal_layer_does_not_see_the_future(name, seed, n_past):
    spec, x = SPECS[name], draw(seed, 2, 9, 10)
    other = x.clone()
    other[:, n_past:] = draw(seed + 1, 2, 9 - n_past, 10)
    module = build(spec, seed)
    for reference in (False, True):
        past, other_past = module(x, reference=reference), module(other, reference=reference)
        torch.testing.assert_close(past[:, :n_past], other_past[:, :n_past], rtol=0, atol=1e-13)
        assert not torch.allclose(past[:, n_past:], other_past[:, n_past:])


def test_a_layer_that_is_not_causal_sees_the_future():
    x = draw(0, 2, 9, 10)
    other = torch.cat([x[:, :-1], draw(1, 2, 1, 10)], dim=1)
    module = build(SPECS["none-plain"])
    assert not torch.allclose(module(x)[:, 0], module(other)[:, 0])


@light
@given(
    st.sampled_from(sorted(name for name in SPECS if name.startswith("none") and not SPECS[name].causal)),
    seeds,
    st.permutations(range(6)),
)
def test_without_positions_a_permutation_of_tokens_permutes_the_output(name, seed, order):
    module, x, mask = build(SPECS[name], seed), draw(seed, 2, 6, 10), draw(seed, 2, 6, 6) > 0
    expected = module(x, mask)[:, order]
    torch.testing.assert_close(module(x[:, order], mask[:, order][:, :, order]), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("position", ["rope-plain", "partial-rope-plain", "alibi-plain"])
def test_with_positions_the_order_matters(position):
    module, x, order = build(SPECS[position]), draw(0, 2, 6, 10), [1, 0, 2, 3, 4, 5]
    assert not torch.allclose(module(x[:, order]), module(x)[:, order], atol=1e-4)


@light
@given(st.sampled_from(sorted(name for name in SPECS if not name.startswith("none"))), seeds)
def test_positions_enter_by_their_offset_alone(name, seed):
    # With one content everywhere only the offset is left: up to a constant per row, log weights are constant on
    # diagonals. Without the causal mask, so that every pair is there to be compared.
    spec = dataclasses.replace(SPECS[name], causal=False)
    x = draw(seed, 1, 1, 10).expand(1, 7, 10)
    _, weights = build(spec, seed)(x, return_weights=True)
    log_ratio = weights.log() - weights.log().diagonal(dim1=-2, dim2=-1)[..., None]
    torch.testing.assert_close(log_ratio[..., 1:, 1:], log_ratio[..., :-1, :-1], rtol=0, atol=1e-10)
    assert log_ratio.abs().max() > 1e-6


@light
@given(
    seeds, st.sampled_from([(4, 4), (4, 2), (4, 1), (6, 3)]), st.sampled_from(["none", "rope", "alibi"]), st.booleans()
)
def test_grouped_heads_are_plain_heads_with_repeated_weights(seed, heads, position, gain):
    n_heads, n_groups = heads
    spec = AttentionSpec(
        10, n_heads, d_head=6, n_kv_heads=n_groups, position=position, bias=True, qk_norm=gain, qk_gain=gain
    )
    grouped, plain = build(spec, seed), Attention(dataclasses.replace(spec, n_kv_heads=n_heads), dtype=torch.float64)
    state = grouped.state_dict()
    for name, value in state.items():
        if name.startswith(("k_proj", "v_proj", "gain_k")):
            per_group = value.unflatten(0, (n_groups, -1)).repeat_interleave(n_heads // n_groups, dim=0)
            state[name] = per_group.flatten(0, 1)
    plain.load_state_dict(state)
    x = draw(seed, 2, 5, 10)
    torch.testing.assert_close(grouped(x), plain(x), rtol=0, atol=1e-13)


@light
@given(seeds, st.sampled_from(["none", "alibi"]), st.booleans())
def test_latent_attention_is_plain_attention_with_factored_weights(seed, position, bias):
    spec = AttentionSpec(10, 4, d_head=3, d_value=2, latent_dim=5, position=position, bias=bias)
    latent, plain = build(spec, seed), Attention(dataclasses.replace(spec, latent_dim=None), dtype=torch.float64)
    state = latent.state_dict()
    down = state.pop("kv_down.weight")
    for up, proj in (("k_up", "k_proj"), ("v_up", "v_proj")):
        state[f"{proj}.weight"] = state.pop(f"{up}.weight") @ down
        if bias:
            state[f"{proj}.bias"] = state.pop(f"{up}.bias")
    plain.load_state_dict(state)
    x = draw(seed, 2, 5, 10)
    torch.testing.assert_close(latent(x), plain(x), rtol=0, atol=1e-13)


@light
@given(seeds, st.integers(1, 12))
def test_heads_add_up(seed, n_heads):
    whole = build(AttentionSpec(10, n_heads, d_head=3, d_value=2), seed)
    x, total = draw(seed, 2, 5, 10), 0
    for h in range(n_heads):
        one = Attention(AttentionSpec(10, 1, d_head=3, d_value=2), dtype=torch.float64)
        state = {
            f"{n}_proj.weight": whole.state_dict()[f"{n}_proj.weight"].split(s)[h]
            for n, s in zip("qkv", (3, 3, 2), strict=True)
        }
        one.load_state_dict(state | {"out_proj.weight": whole.out_proj.weight.split(2, dim=1)[h]})
        total = total + one(x)
    torch.testing.assert_close(whole(x), total, rtol=0, atol=1e-12)


# --- limits with a closed form --------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_without_queries_a_head_reads_the_average(causal):
    module, x = build(AttentionSpec(8, 2, causal=causal)), draw(0, 2, 6, 8)
    module.q_proj.weight.data.zero_()
    average = x.cumsum(1) / torch.arange(1, 7)[:, None] if causal else x.mean(1, keepdim=True).expand_as(x)
    expected = average @ module.v_proj.weight.T @ module.out_proj.weight.T
    for reference in (False, True):
        torch.testing.assert_close(module(x, reference=reference), expected, rtol=0, atol=1e-14)


def test_without_queries_alibi_leaves_a_geometric_law():
    module = build(AttentionSpec(8, 2, position="alibi", causal=True))
    module.q_proj.weight.data.zero_()
    _, weights = module(draw(0, 1, 6, 8), return_weights=True)
    for h in range(2):
        law = torch.exp(-(2.0 ** (-4 * (h + 1))) * torch.arange(5, -1, -1, dtype=torch.float64))
        torch.testing.assert_close(weights[0, h, -1], law / law.sum(), rtol=0, atol=1e-14)


def test_a_single_token_reads_itself():
    module, x = build(AttentionSpec(8, 2, position="rope")), draw(0, 2, 1, 8)
    torch.testing.assert_close(module(x), x @ module.v_proj.weight.T @ module.out_proj.weight.T, rtol=0, atol=1e-14)


def test_normalised_queries_and_keys_do_not_feel_the_scale_of_a_token():
    module, x = build(AttentionSpec(8, 2, qk_norm=True, qk_eps=0)), draw(0, 2, 6, 8)
    scale = draw(1, 2, 6, 1).abs()
    _, weights = module(x, return_weights=True)
    _, scaled = module(x * scale, return_weights=True)
    torch.testing.assert_close(scaled, weights, rtol=0, atol=1e-13)
    _, tiny = build(AttentionSpec(8, 2, qk_norm=True, qk_eps=1.0))(x * 1e-9, return_weights=True)
    torch.testing.assert_close(tiny, torch.full_like(tiny, 1 / 6), rtol=0, atol=1e-12)


# --- masks at the edge ----------------------------------------------------------------------------------------------


@light
@given(names, seeds)
def test_a_token_that_may_attend_to_nothing_reads_nothing(name, seed):
    spec, x = SPECS[name], draw(seed, 2, 5, 10).requires_grad_()
    module = build(spec, seed)
    if spec.bias:
        module.out_proj.bias.data.normal_(generator=generator(seed, "b_O"))
    alone = module.out_proj.bias if spec.bias else torch.zeros(10, dtype=torch.float64)
    mask = torch.ones(2, 5, 5, dtype=torch.bool)
    mask[0, 2], mask[1] = False, False
    y, weights = module(x, mask, return_weights=True)
    assert (weights[0, :, 2] == 0).all()
    assert (weights[1] == 0).all()
    for output in (y, module(x, mask)):
        assert torch.equal(output[0, 2], alone)
        assert torch.equal(output[1], alone.expand(5, 10))
        gradients = torch.autograd.grad(output.square().sum(), [x, *module.parameters()], retain_graph=True)
        assert all(gradient.isfinite().all() for gradient in gradients)
        assert not gradients[0][1].any(), "nothing was read from the second sequence, so it has no gradient"


@pytest.mark.parametrize("exponent", [-30, -6, -3, 0, 3, 6, 15, 30])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("position", ["none", "alibi"])
def test_forbidden_weights_are_exactly_zero_at_any_scale_of_the_scores(position, causal, exponent):
    spec = AttentionSpec(10, 4, d_head=6, causal=causal, position=position)
    module = build(spec, dtype=torch.float32)
    module.q_proj.weight.data *= 10.0**exponent
    x = draw(0, 2, 7, 10).float().requires_grad_()
    mask = draw(1, 2, 7, 7) > 0
    y, weights = module(x, mask, return_weights=True)
    allowed = (mask.tril() if causal else mask)[:, None].expand_as(weights)
    assert (weights[~allowed] == 0).all()
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).float())
    for output in (y, module(x, mask)):
        gradients = torch.autograd.grad(output.sum(), [x, *module.parameters()], retain_graph=True)
        assert all(gradient.isfinite().all() for gradient in [output, *gradients])

    # The fast path shows no weights; what a token may not see must not reach it, however large.
    hidden = torch.zeros(7, 7, dtype=torch.bool)
    hidden[:, :3] = True
    loud = x.detach().clone()
    loud[:, 3:] *= 1e3
    assert torch.equal(module(x, hidden)[:, :3], module(loud, hidden)[:, :3])


def test_a_large_negative_number_in_place_of_infinity_would_leak(monkeypatch):
    monkeypatch.setattr(math, "inf", 1e9)
    with pytest.raises(AssertionError):
        test_forbidden_weights_are_exactly_zero_at_any_scale_of_the_scores("none", False, 30)
