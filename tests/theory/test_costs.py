import dataclasses
import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from manyheads.models import Attention, AttentionSpec, Encoder, EncoderSpec, schedules
from manyheads.models.checks import divisors
from manyheads.models.seeds import generator, initialise
from manyheads.theory import costs
from manyheads.theory.costs import cost, decoder_parameters, encoder_parameters

light = settings(deadline=None, max_examples=100)


@st.composite
def specs(draw, largest=12) -> AttentionSpec:
    """Any legal spec, with sizes up to ``largest``."""
    size = st.integers(1, largest)
    n_heads = draw(size)
    position = draw(st.sampled_from(["none", "rope", "alibi"]))
    latent_dim = draw(st.none() | size) if position != "rope" else None
    qk_norm = draw(st.booleans())
    d_head = draw(size.map(lambda n: 2 * n) if position == "rope" else size)
    return AttentionSpec(
        d_model=draw(size),
        n_heads=n_heads,
        d_head=d_head,
        d_value=draw(st.none() | size),
        n_kv_heads=draw(st.sampled_from(divisors(n_heads))) if latent_dim is None else n_heads,
        position=position,
        rotary_dim=draw(st.none() | st.integers(1, d_head // 2).map(lambda n: 2 * n)) if position == "rope" else None,
        qk_norm=qk_norm,
        qk_gain=qk_norm and draw(st.booleans()),
        latent_dim=latent_dim,
        bias=draw(st.booleans()),
        causal=draw(st.booleans()),
    )


PARTS = {
    "q": ["q_proj"],
    "k": ["k_proj", "k_up"],
    "v": ["v_proj", "v_up"],
    "down": ["kv_down"],
    "out": ["out_proj"],
    "gain": ["gain_q", "gain_k"],
}


@light
@given(specs())
def test_parameters_are_those_of_the_module(spec):
    sizes = {name: p.numel() for name, p in Attention(spec, device="meta").named_parameters()}
    counted = cost(spec, 1)
    assert counted.parameters == sum(sizes.values())
    for part, modules in PARTS.items():
        built = sum(size for name, size in sizes.items() if name.split(".")[0] in modules)
        assert counted.parameters_by_part.get(part, 0) == built


def flops_of(spec, n_tokens, device, **options) -> int:
    module = Attention(spec, device=device)
    # On the CPU torch's counter does not know the fused kernel and would count 0 for it.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        module(torch.empty(1, n_tokens, spec.d_model, device=device), **options)
    return counter.get_total_flops()


@light
@given(specs(), st.integers(1, 9))
def test_flops_are_those_of_torchs_counter(spec, n_tokens):
    assert cost(spec, n_tokens).matmul_flops == flops_of(spec, n_tokens, "meta")
    assert cost(spec, n_tokens).matmul_flops == flops_of(spec, n_tokens, "cpu", reference=True)


@settings(deadline=None, max_examples=10)
@given(specs(), st.integers(1, 9))
def test_flops_are_those_of_torchs_counter_on_real_tensors(spec, n_tokens):
    assert cost(spec, n_tokens).matmul_flops == flops_of(spec, n_tokens, "cpu")


@light
@given(specs(), st.integers(1, 20))
def test_parts_add_up(spec, n_tokens):
    counted = cost(spec, n_tokens)
    assert sum(counted.parameters_by_part.values()) == counted.parameters
    assert sum(counted.flops_by_part.values()) == counted.matmul_flops
    assert counted.softmax_elements == counted.n_patterns * n_tokens**2
    assert (counted.flops_by_part["scores"], counted.flops_by_part["mix"]) == (
        2 * counted.softmax_elements * spec.d_head,
        2 * counted.softmax_elements * spec.d_value,
    )


@light
@given(specs(), st.integers(1, 9))
def test_softmax_elements_and_cache_are_the_sizes_of_real_tensors(spec, n_tokens):
    module, x = Attention(spec, device="meta"), torch.empty(1, n_tokens, spec.d_model, device="meta")
    assert cost(spec, n_tokens).softmax_elements == module(x, return_weights=True)[1].numel()
    _, k_bgtd, v_bgtc = module.project(x)
    cached = k_bgtd.numel() + v_bgtc.numel() if spec.latent_dim is None else module.kv_down(x).numel()
    assert cost(spec, n_tokens).kv_cache_bytes == 4 * cached


@pytest.mark.parametrize(
    ("dtype", "n_bytes"),
    [
        ("float64", 8),
        ("float32", 4),
        ("bfloat16", 2),
        ("float16", 2),
        ("int8", 1),
        ("float8_e5m2", 1),
        (torch.float16, 2),
    ],
)
def test_cache_bytes_follow_the_type(dtype, n_bytes):
    # 32 layers of 8 groups with D = C = 128 at 8,192 tokens in 16 bits: 1 GiB.
    assert 32 * cost(AttentionSpec(4096, 32, n_kv_heads=8), 8192, dtype).kv_cache_bytes == 2**29 * n_bytes


# --- the rank of the scores -----------------------------------------------------------------------------------------


def score_ranks(spec, n_tokens, seed=0) -> list[int]:
    """Rank of each head's matrix of inner products of queries and keys, by singular values."""
    module = initialise(Attention(spec, dtype=torch.float64), seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "bias" in name or "gain" in name:
                parameter += torch.randn(parameter.shape, dtype=torch.float64, generator=generator(seed, name))
        x = torch.randn(1, n_tokens, spec.d_model, dtype=torch.float64, generator=generator(seed, "tokens"))
        q_bhtd, k_bgtd, _ = module.project(x)
        k_bhtd = k_bgtd.repeat_interleave(spec.n_heads // spec.n_kv_heads, dim=1)
        singular = torch.linalg.svdvals(q_bhtd[0] @ k_bhtd[0].mT)
    relative = singular / singular[:, :1]
    assert not ((relative > 1e-13) & (relative < 1e-11)).any(), "no clear gap between zero and not zero"
    return (relative > 1e-12).sum(-1).tolist()


@pytest.mark.parametrize("n_tokens", [3, 4, 5, 6, 7, 12])
@pytest.mark.parametrize("d_head", [2, 4, 6, 8])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": True},
        {"n_kv_heads": 1},
        {"position": "alibi"},
        {"position": "rope"},
        {"position": "rope", "rotary_dim": 2},
        {"position": "rope", "rotary_dim": 2, "bias": True},
        {"qk_norm": True, "qk_gain": True, "bias": True},
        {"latent_dim": 3},
        {"latent_dim": 3, "bias": True},
        {"latent_dim": 9, "bias": True},
    ],
    ids=str,
)
def test_the_rank_bound_holds_and_is_attained_on_both_sides_of_every_edge(options, d_head, n_tokens):
    spec = AttentionSpec(d_model=5, n_heads=2, d_head=d_head, **options)
    assert score_ranks(spec, n_tokens) == [cost(spec, n_tokens).score_rank] * 2


def test_the_plain_rank_bound_is_the_smallest_of_three_sizes():
    for d_head, d_model, n_tokens in [(2, 5, 9), (7, 5, 9), (7, 5, 3)]:
        spec = AttentionSpec(d_model, 1, d_head=d_head)
        assert cost(spec, n_tokens).score_rank == min(d_head, d_model, n_tokens)


# --- what a head count changes and what it does not -----------------------------------------------------------------


@pytest.mark.parametrize("d_model", [12, 768, 1024, 1536])
def test_at_fixed_width_heads_change_the_softmax_and_nothing_else_of_the_work(d_model):
    per_head = {n_heads: cost(AttentionSpec(d_model, n_heads), 1024) for n_heads in divisors(d_model)}
    assert len({(c.parameters, c.matmul_flops, c.kv_cache_bytes) for c in per_head.values()}) == 1
    assert per_head[1].parameters == 4 * d_model**2
    assert per_head[1].matmul_flops == 2 * 1024 * 4 * d_model**2 + 4 * 1024**2 * d_model
    assert all(c.softmax_elements == n_heads * 1024**2 for n_heads, c in per_head.items())
    assert all(c.score_rank == min(d_model // n_heads, 1024) for n_heads, c in per_head.items())


def test_biases_do_not_spoil_it_but_a_fixed_head_dimension_does():
    assert len({cost(AttentionSpec(768, n_heads, bias=True), 64).parameters for n_heads in (1, 3, 12, 768)}) == 1
    assert len({cost(AttentionSpec(768, n_heads, d_head=64), 64).parameters for n_heads in (1, 3, 12, 768)}) == 4


@pytest.mark.parametrize(("n_layers", "d_model"), [(12, 768), (24, 1024), (24, 1536)])
def test_prism_costs_what_uniform_costs_but_for_the_softmax(n_layers, d_model):
    def total(heads):
        layers = [cost(AttentionSpec(d_model, n_heads, causal=True), 1024) for n_heads in heads]
        modules = [Attention(AttentionSpec(d_model, n_heads), device="meta") for n_heads in heads]
        built = sum(p.numel() for module in modules for p in module.parameters())
        assert built == sum(c.parameters for c in layers)
        return built, sum(c.matmul_flops for c in layers), sum(c.softmax_elements for c in layers)

    prism = total(schedules.prism(n_layers, d_model))
    uniform = total(schedules.uniform(n_layers, d_model, d_model // 64))
    assert prism[:2] == uniform[:2]
    assert prism[2] / uniform[2] == (1 / 256 + 1 / 128) / 2 * 64


@pytest.mark.parametrize(("shape", "millions"), [((12, 768), 123.6), ((24, 1024), 353.5), ((24, 1536), 756.7)])
def test_decoders_of_the_prism_paper(shape, millions):
    assert round(decoder_parameters(*shape, 50_304) / 1e6, 1) == millions


def test_decoder_counts_follow_the_feed_forward_width():
    assert decoder_parameters(2, 8, 10, d_ff=24) == 2 * (4 * 64 + 2 * 8 * 24) + 80
    assert decoder_parameters(2, 8, 10) == decoder_parameters(2, 8, 10, d_ff=32)
    attention = cost(AttentionSpec(8, 2), 1).parameters
    assert decoder_parameters(3, 8, 10, d_ff=1) == 3 * (attention + 16) + 80


@light
@given(st.data())
def test_encoder_parameters_are_those_of_the_module(data):
    size = st.integers(1, 9)
    spec = EncoderSpec(
        d_in=data.draw(size),
        d_out=data.draw(size),
        d_model=data.draw(size),
        heads=data.draw(st.lists(size, min_size=1, max_size=3)),
        d_head=2 * data.draw(size),
        d_value=data.draw(st.none() | size),
        d_ff=data.draw(st.none() | size),
        ffn=data.draw(st.sampled_from(["gelu", "relu", "bilinear", "swiglu"])),
        norm=data.draw(st.booleans()),
        embedding=data.draw(st.sampled_from(["linear", "mlp"])),
        position=data.draw(st.sampled_from(["none", "rope", "alibi"])),
        bias=data.draw(st.booleans()),
    )
    assert encoder_parameters(spec) == sum(p.numel() for p in Encoder(spec, device="meta").parameters())


# --- the rest -------------------------------------------------------------------------------------------------------


def test_a_cost_is_frozen_hashable_and_goes_to_json():
    counted = cost(AttentionSpec(10, 2, latent_dim=6, d_head=3), 7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        counted.parameters = 0
    assert hash(counted) == hash(cost(AttentionSpec(10, 2, latent_dim=6, d_head=3), 7))
    assert costs.Cost(**json.loads(json.dumps(dataclasses.asdict(counted)))) == counted
    assert counted.parameters == 252


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "context=0 must be a positive integer; nearest: 1"),
        ((8.5,), "context=8.5 must be a positive integer; nearest: 8"),
        ((8, "float23"), "unknown dtype 'float23'; did you mean 'float32'? known: float64, float32,"),
        ((8, None), "unknown dtype None"),
        ((8, ["float32"]), "unknown dtype ['float32']"),
        ((8, np.dtype("float32")), "unknown dtype dtype('float32'); did you mean 'float32'?"),
        ((True,), "context=True must be a positive integer"),
        ((10**30,), "must be a positive integer; nearest: 9223372036854775807"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        cost(AttentionSpec(8, 2), *arguments)


@pytest.mark.parametrize(
    ("arguments", "name"), [((0, 8, 9), "n_layers"), ((1, 8, -9), "vocab_size"), ((1, 8, 9, 0), "d_ff")]
)
def test_bad_decoders_are_named(arguments, name):
    with pytest.raises(ValueError, match=f"{name}=.* must be a positive integer"):
        decoder_parameters(*arguments)
