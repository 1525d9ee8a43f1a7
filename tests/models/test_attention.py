"""The layer against three accounts of it: loops written from its definition, its other path, and torch's own layer."""

import contextlib
import dataclasses
import math
import re

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from manyheads.models import Attention, AttentionSpec, attention, positions
from manyheads.models.seeds import generator, initialise
from tests.models import legal

SPECS = legal.specs()
every_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
# A quarter of them, for slower tests: with biases and causal.
FULL = {name: spec for name, spec in SPECS.items() if spec.bias and spec.causal}
every_full_spec = pytest.mark.parametrize("spec", FULL.values(), ids=FULL.keys())
BATCH, TOKENS = 2, 5


def tokens(spec, dtype=torch.float64, n_tokens=TOKENS):
    x = torch.randn(BATCH, n_tokens, spec.d_model, dtype=torch.float64, generator=generator(0, "tokens"))
    return x.to(dtype)


def layer(spec, dtype=torch.float64, seed=0) -> Attention:
    """A layer in which nothing is at a special value: biases and gains are drawn too."""
    module = initialise(Attention(spec, dtype=dtype), seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "bias" in name or "gain" in name:
                parameter += 0.5 * torch.randn(parameter.shape, generator=generator(seed, "shift", name)).to(dtype)
    return module


def masks(n_tokens=TOKENS, batch=BATCH):
    """No mask, a shared one, one per sequence; the last two with rows in which nothing is allowed."""
    draw = torch.rand(batch, n_tokens, n_tokens, generator=generator(0, "mask")) < 0.6
    draw[0, 1] = False
    draw[-1, n_tokens - 1] = False
    return {"none": None, "shared": draw[0], "per-sequence": draw}


def by_definition(module: Attention, x, mask=None):
    """y and weights, one query at a time, in plain Python floats and complex numbers where it helps to see."""
    spec, p = module.spec, {name: value.detach() for name, value in module.named_parameters()}
    n_batch, n_tokens, _ = x.shape

    def affine(name, vector):
        return p[f"{name}.weight"] @ vector + p.get(f"{name}.bias", 0)

    def prepare(vector, gain, t):
        if spec.qk_norm:
            vector = vector / math.sqrt(sum(float(u) ** 2 for u in vector) / spec.d_head + spec.qk_eps)
        if gain is not None:
            vector = vector * gain
        vector = vector.clone()
        for i in range(0, spec.rotary_dim or 0, 2):
            angle = t * 10_000 ** (-i / spec.rotary_dim)
            turned = complex(vector[i], vector[i + 1]) * complex(math.cos(angle), math.sin(angle))
            vector[i], vector[i + 1] = turned.real, turned.imag
        return vector

    y = torch.zeros(n_batch, n_tokens, spec.d_model, dtype=x.dtype)
    weights = torch.zeros(n_batch, spec.n_heads, n_tokens, n_tokens, dtype=x.dtype)
    for b in range(n_batch):
        sources = [x[b, t] if spec.latent_dim is None else p["kv_down.weight"] @ x[b, t] for t in range(n_tokens)]
        k_name, v_name = ("k_proj", "v_proj") if spec.latent_dim is None else ("k_up", "v_up")
        queries = [affine("q_proj", x[b, t]).split(spec.d_head) for t in range(n_tokens)]
        keys = [affine(k_name, source).split(spec.d_head) for source in sources]
        values = [affine(v_name, source).split(spec.d_value) for source in sources]
        read = torch.zeros(n_tokens, spec.n_heads, spec.d_value, dtype=x.dtype)
        for h in range(spec.n_heads):
            g = h // (spec.n_heads // spec.n_kv_heads)
            gain_q, gain_k = (p["gain_q"][h], p["gain_k"][g]) if spec.qk_gain else (None, None)
            qs = [prepare(queries[t][h], gain_q, t) for t in range(n_tokens)]
            ks = [prepare(keys[t][g], gain_k, t) for t in range(n_tokens)]
            slope = 2 ** (-8 * (h + 1) / spec.n_heads) if spec.position == "alibi" else 0
            for i in range(n_tokens):
                seen = [j for j in range(n_tokens) if not (spec.causal and j > i)]
                if mask is not None:
                    seen = [j for j in seen if (mask if mask.ndim == 2 else mask[b])[i, j]]
                exps = {j: math.exp(qs[i] @ ks[j] / math.sqrt(spec.d_head) - slope * abs(i - j)) for j in seen}
                for j in seen:
                    weights[b, h, i, j] = exps[j] / sum(exps.values())
                    read[i, h] += weights[b, h, i, j] * values[j][g]
        for i in range(n_tokens):
            y[b, i] = affine("out_proj", read[i].flatten())
    return y, weights


@every_spec
def test_the_layer_is_its_definition(spec):
    module, x, mask = layer(spec), tokens(spec), masks()["per-sequence"]
    y, weights = module(x, mask, return_weights=True)
    y_defined, weights_defined = by_definition(module, x, mask)
    torch.testing.assert_close(weights, weights_defined, rtol=0, atol=1e-13)
    torch.testing.assert_close(y, y_defined, rtol=0, atol=1e-12)
    torch.testing.assert_close(module(x, mask), y_defined, rtol=0, atol=1e-12)


MODES = {
    "train": contextlib.nullcontext,
    "eval": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
}
# What torch's choice of a kernel may depend on: positions, groups, causality.
KERNELS = {name: s for name, s in SPECS.items() if not s.bias and not s.qk_norm and s.d_value == s.d_head}


@every_spec
def test_fast_and_reference_path_agree(spec):
    assert_paths_agree(spec, torch.float32, 1e-6)
    assert_paths_agree(spec, torch.float64, 1e-14)


@pytest.mark.parametrize("spec", KERNELS.values(), ids=KERNELS.keys())
def test_no_mode_changes_the_numbers(spec):
    assert_paths_agree(spec, torch.float32, 1e-6, MODES)
    assert_paths_agree(spec, torch.float64, 1e-14, MODES)


def assert_paths_agree(spec, dtype, tolerance, modes=("train",)):
    module, x = layer(spec, dtype), tokens(spec, dtype)
    outputs = {}
    for mode in modes:
        module.train(mode == "train")
        for kind, mask in masks().items():
            with MODES[mode]():
                fast, reference = module(x, mask), module(x, mask, reference=True)
                y, weights = module(x, mask, return_weights=True)
            scale = max(1.0, fast.abs().max().item())
            torch.testing.assert_close(fast, reference, rtol=0, atol=tolerance * scale)
            assert torch.equal(y, reference)
            assert weights.shape == (BATCH, spec.n_heads, TOKENS, TOKENS)
            assert torch.equal(outputs.setdefault(kind, reference), reference), f"{mode} changes the numbers"


@every_full_spec
def test_gradients_of_both_paths_agree(spec):
    module, x = layer(spec), tokens(spec)
    for mask in masks().values():
        gradients = []
        for reference in (False, True):
            module.zero_grad()
            module(x, mask, reference=reference).square().sum().backward()
            gradients.append({name: parameter.grad.clone() for name, parameter in module.named_parameters()})
        for name, gradient in gradients[0].items():
            assert gradient.isfinite().all(), name
            torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-10, atol=1e-11, msg=name)


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("name", ["none-grouped-bias", "partial-rope-one-key-gain-d_value", "alibi-latent-norm-causal"])
def test_gradients_are_those_of_finite_differences_with_masked_rows_too(name, reference):
    spec = SPECS[name]
    module, x = layer(spec), tokens(spec)[:, :3].requires_grad_()
    mask = masks(3)["per-sequence"]
    assert not mask.any(-1).all()
    names, parameters = zip(*module.named_parameters(), strict=True)

    def y(x, *parameters):
        arguments = (x, mask, False, reference)
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), arguments)

    assert torch.autograd.gradcheck(y, (x, *parameters), fast_mode=True)


# --- torch's own module -------------------------------------------------------------------------------------------


def torch_twin(module: Attention) -> nn.MultiheadAttention:
    spec = module.spec
    twin = nn.MultiheadAttention(spec.d_model, spec.n_heads, bias=spec.bias, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        projections = [module.q_proj, module.k_proj, module.v_proj]
        twin.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        twin.out_proj.weight.copy_(module.out_proj.weight)
        if spec.bias:
            twin.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
            twin.out_proj.bias.copy_(module.out_proj.bias)
    return twin


def assert_equals_torch(spec: AttentionSpec, mask):
    module, x = layer(spec), tokens(spec, n_tokens=7)
    forbidden = torch.zeros(7, 7, dtype=torch.bool) if mask is None else ~mask
    if spec.causal:
        forbidden = forbidden | torch.ones(7, 7, dtype=torch.bool).triu(1)
    if forbidden.ndim == 3:
        forbidden = forbidden.repeat_interleave(spec.n_heads, dim=0)
    y_torch, weights_torch = torch_twin(module)(x, x, x, attn_mask=forbidden, average_attn_weights=False)
    y, weights = module(x, mask, return_weights=True)
    torch.testing.assert_close(weights, weights_torch, rtol=0, atol=1e-14)
    torch.testing.assert_close(y, y_torch, rtol=0, atol=1e-13)
    torch.testing.assert_close(module(x, mask), y_torch, rtol=0, atol=1e-13)


def open_mask(shape):
    """A random mask in which every token may attend to itself: torch's module answers an empty row with nan."""
    return (torch.rand(shape, generator=generator(1, "mask")) < 0.5) | torch.eye(shape[-1], dtype=torch.bool)


TORCH_SPECS = [
    AttentionSpec(12, n_heads, bias=bias, causal=causal)
    for n_heads in (1, 3, 12)
    for bias in (False, True)
    for causal in (False, True)
]


@pytest.mark.parametrize(
    "mask", [None, open_mask((7, 7)), open_mask((BATCH, 7, 7))], ids=["none", "shared", "per-sequence"]
)
@pytest.mark.parametrize("spec", TORCH_SPECS, ids=lambda s: f"H{s.n_heads}-bias{s.bias}-causal{s.causal}")
def test_copied_weights_give_what_torch_gives(spec, mask):
    assert_equals_torch(spec, mask)


def test_a_mask_of_the_wrong_polarity_does_not_pass(monkeypatch):
    right = attention.may_attend
    monkeypatch.setattr(attention, "may_attend", lambda mask, *rest: right(None if mask is None else ~mask, *rest))
    with pytest.raises(AssertionError):
        assert_equals_torch(AttentionSpec(12, 3), open_mask((7, 7)))


def test_a_fast_path_that_drops_the_bias_does_not_pass(monkeypatch):
    right, spec = attention.mix_fast, SPECS["alibi-plain"]
    monkeypatch.setattr(attention, "mix_fast", lambda q, k, v, bias, mask, causal: right(q, k, v, None, mask, causal))
    with pytest.raises(AssertionError):
        assert_paths_agree(spec, torch.float32, 1e-6)


# --- sizes, types, devices ----------------------------------------------------------------------------------------


def test_a_width_that_heads_do_not_divide():
    spec = AttentionSpec(d_model=1023, n_heads=8, d_head=25, bias=True)
    module = Attention(spec)
    y, weights = module(tokens(spec, torch.float32), return_weights=True)
    assert y.shape == (BATCH, TOKENS, 1023)
    assert weights.shape == (BATCH, 8, TOKENS, TOKENS)
    assert module.q_proj.weight.shape == (200, 1023)
    assert module.out_proj.weight.shape == (1023, 200)


def test_latent_attention_has_the_parameters_it_should():
    for latent_dim, count in ((6, 252), (4, 208)):
        module = Attention(AttentionSpec(10, 2, d_head=3, latent_dim=latent_dim))
        assert sum(p.numel() for p in module.parameters()) == count
        assert {name.split(".")[0] for name, _ in module.named_parameters()} == {
            "q_proj", "kv_down", "k_up", "v_up", "out_proj",
        }  # fmt: skip


def test_biases_are_where_they_should_be():
    plain = {n for n, _ in Attention(AttentionSpec(8, 2, bias=True)).named_parameters() if "bias" in n}
    latent = {n for n, _ in Attention(AttentionSpec(8, 2, bias=True, latent_dim=3)).named_parameters() if "bias" in n}
    assert plain == {"q_proj.bias", "k_proj.bias", "v_proj.bias", "out_proj.bias"}
    assert latent == {"q_proj.bias", "k_up.bias", "v_up.bias", "out_proj.bias"}


@every_full_spec
def test_bfloat16_runs_and_is_close(spec):
    module, x, mask = layer(spec, torch.float32), tokens(spec, torch.float32), masks()["shared"]
    exact = module(x, mask)
    module.bfloat16()
    for reference in (False, True):
        y = module(x.bfloat16(), mask, reference=reference)
        assert y.dtype == torch.bfloat16
        assert (y.float() - exact).norm() < 0.05 * exact.norm()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_runs(dtype):
    spec = SPECS["partial-rope-grouped-gain-bias-causal"]
    module, x = layer(spec, torch.float32), tokens(spec, torch.float32)
    exact = module(x)
    with torch.autocast("cpu", dtype):
        for reference in (False, True):
            assert (module(x, reference=reference).float() - exact).norm() < 0.05 * exact.norm()


class OneDevice(TorchDispatchMode):
    """Fail as soon as an operation touches a tensor that is not on the meta device."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves((args, kwargs, out)):
            assert not isinstance(tensor, torch.Tensor) or tensor.is_meta, f"{function} on {tensor.device}"
        return out


@every_full_spec
def test_everything_stays_on_the_device(spec):
    module, x = Attention(spec, device="meta"), torch.empty(BATCH, TOKENS, spec.d_model, device="meta")
    mask = torch.empty(BATCH, TOKENS, TOKENS, dtype=torch.bool, device="meta")
    with OneDevice():
        assert module(x).shape == x.shape
        assert module(x, mask).shape == x.shape
        y, weights = module(x, mask[0], return_weights=True)
        assert y.shape == x.shape
        assert weights.shape == (BATCH, spec.n_heads, TOKENS, TOKENS)


def test_a_stray_tensor_is_noticed(monkeypatch):
    spec, right = SPECS["alibi-plain"], positions.alibi_bias
    monkeypatch.setattr(positions, "alibi_bias", lambda h, t, device, dtype: right(h, t, "cpu", dtype))
    module, x = Attention(spec, device="meta"), torch.empty(BATCH, TOKENS, spec.d_model, device="meta")
    with pytest.raises((AssertionError, RuntimeError)), OneDevice():
        module(x)


@pytest.mark.parametrize("reference", [False, True])
def test_an_empty_batch_gives_an_empty_answer(reference):
    spec = SPECS["alibi-grouped-causal"]
    y = Attention(spec)(
        torch.zeros(0, TOKENS, 10), torch.ones(0, TOKENS, TOKENS, dtype=torch.bool), reference=reference
    )
    assert y.shape == (0, TOKENS, 10)


def test_a_layer_moves_as_a_whole():
    module = Attention(SPECS["rope-plain-gain-bias"]).to("meta")
    assert all(p.is_meta for p in module.parameters())
    assert not list(module.buffers())


def test_the_layer_shows_its_spec():
    assert "n_kv_heads=2" in repr(Attention(SPECS["none-grouped"]))


# --- bad inputs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "mask", "message"),
    [
        (torch.zeros(5, 10), None, "x must have shape [B, T, d_model=10], not [5, 10]"),
        (torch.zeros(2, 5, 9), None, "x must have shape [B, T, d_model=10], not [2, 5, 9]"),
        (torch.zeros(2, 5, 10), torch.ones(5, 5), "mask must be torch.bool with True = may attend, not torch.float32"),
        (
            torch.zeros(2, 5, 10),
            torch.ones(4, 4, dtype=torch.bool),
            "mask must have shape [T, T] = [5, 5] or [B, T, T] = [2, 5, 5], not [4, 4]",
        ),
        (torch.zeros(2, 5, 10), torch.ones(1, 5, 5, dtype=torch.bool), "not [1, 5, 5]"),
        (torch.zeros(2, 5, 10), torch.ones(2, 4, 5, 5, dtype=torch.bool), "not [2, 4, 5, 5]"),
        (torch.zeros(2, 5, 10), torch.ones(5, 5, dtype=torch.bool, device="meta"), "mask is on meta, x on cpu"),
    ],
)
def test_bad_inputs_are_named_with_their_values(x, mask, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Attention(SPECS["none-plain"])(x, mask)


def test_specs_cover_what_the_tests_above_rely_on():
    assert len(SPECS) == (4 + 3 + 3 + 4) * 3 * 2 * 4
    assert len({dataclasses.astuple(spec) for spec in SPECS.values()}) == len(SPECS)
