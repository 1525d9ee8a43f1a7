"""The encoder against torch's own, its definition, and the laws it obeys."""

import dataclasses
import json
import re
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from manyheads.models import Encoder, EncoderSpec, attention, encoder
from manyheads.models.feedforward import KINDS
from manyheads.models.seeds import generator, initialise

pytestmark = pytest.mark.usefixtures("one_thread")
BATCH, TOKENS = 3, 5
SPECS = {
    "-".join([ffn, embedding, position, "norm" * norm, "bias" * bias]): EncoderSpec(
        2, 3, 8, (2, 1), d_head=4, d_ff=6, ffn=ffn, norm=norm, embedding=embedding, position=position, bias=bias
    )
    for ffn, norm, embedding, position, bias in product(
        KINDS, (False, True), encoder.EMBEDDINGS, ("none", "rope", "alibi"), (False, True)
    )
}
every_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())


def tokens(spec, dtype=torch.float64, n_tokens=TOKENS):
    return torch.randn(
        BATCH, n_tokens, spec.d_in, dtype=torch.float64, generator=generator(0, "tokens", str(n_tokens))
    ).to(dtype)


def model(spec, dtype=torch.float64) -> Encoder:
    """An encoder in which nothing is at a special value: biases and gains are drawn too."""
    module = initialise(Encoder(spec, dtype=dtype), 0)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator(0, "shift", name)).to(dtype)
    return module


def torchs(ours: Encoder) -> nn.TransformerEncoder:
    """Torch's encoder with our weights, for the shapes it knows."""
    spec = ours.spec
    layer = nn.TransformerEncoderLayer(
        spec.d_model, spec.heads[0], spec.d_ff, 0.0, spec.ffn, batch_first=True, norm_first=True, dtype=torch.float64
    )
    theirs = nn.TransformerEncoder(
        layer, spec.n_layers, nn.LayerNorm(spec.d_model, dtype=torch.float64), enable_nested_tensor=False
    )
    with torch.no_grad():
        for a, b in zip(ours.layers, theirs.layers, strict=True):
            qkv = (a.attention.q_proj, a.attention.k_proj, a.attention.v_proj)
            b.self_attn.in_proj_weight.copy_(torch.cat([linear.weight for linear in qkv]))
            b.self_attn.in_proj_bias.copy_(torch.cat([linear.bias for linear in qkv]))
            pairs = [
                (a.attention.out_proj, b.self_attn.out_proj),
                (a.norm_1, b.norm1),
                (a.norm_2, b.norm2),
                (a.feedforward.up_proj, b.linear1),
                (a.feedforward.down_proj, b.linear2),
            ]
            for source, target in pairs:
                target.load_state_dict(source.state_dict())
        theirs.norm.load_state_dict(ours.norm.state_dict())
    return theirs


@pytest.mark.parametrize("ffn", ["relu", "gelu"])
@pytest.mark.parametrize("heads", [(1,), (2, 2), (4, 4, 4)])
@pytest.mark.parametrize("training", [False, True])
def test_it_is_torchs_encoder_where_the_shapes_allow(ffn, heads, training):
    ours = model(EncoderSpec(2, 3, 8, heads, d_ff=6, ffn=ffn, norm=True, bias=True))
    theirs, x = torchs(ours), tokens(ours.spec)
    ours.train(training)
    theirs.train(training)
    stream = torch.cat([ours.embedding(x), ours.class_token.expand(BATCH, 1, -1)], dim=1)
    torch.testing.assert_close(ours(x), ours.head(theirs(stream)[:, -1]), rtol=0, atol=1e-12)
    gradients = [
        torch.autograd.grad(y.square().sum(), ours.class_token) for y in (ours(x), ours.head(theirs(stream)[:, -1]))
    ]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-11)


def test_masks_mean_what_they_mean_in_attention():
    ours = model(EncoderSpec(2, 3, 8, (2, 2), d_ff=6, norm=True, bias=True))
    x, mask = tokens(ours.spec), torch.rand(TOKENS + 1, TOKENS + 1, generator=generator(0, "mask")) < 0.6
    mask.fill_diagonal_(True)
    stream = torch.cat([ours.embedding(x), ours.class_token.expand(BATCH, 1, -1)], dim=1)
    expected = ours.head(torchs(ours)(stream, mask=~mask)[:, -1])  # torch's True forbids
    torch.testing.assert_close(ours(x, mask), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours(x, mask.expand(BATCH, -1, -1)), expected, rtol=0, atol=1e-12)


@every_spec
def test_all_combinations_run_and_every_parameter_learns(spec):
    for dtype in (torch.float32, torch.float64):
        module = model(spec, dtype)
        y = module(tokens(spec, dtype))
        assert y.shape == (BATCH, spec.d_out)
        assert y.dtype == dtype
        module.zero_grad()
        y.square().sum().backward()
        for name, parameter in module.named_parameters():
            # Softmax does not see what all keys share, so without positions a bias of the keys cannot learn.
            unseen = "k_proj.bias" in name and spec.position != "rope"
            assert (parameter.grad.abs().max() > 1e-5) or unseen, name


@every_spec
def test_states_lead_to_the_answer(spec):
    module, x = model(spec), tokens(spec)
    streams, weights = module.states(x)
    assert [s.shape for s in streams] == [(BATCH, TOKENS + 1, spec.d_model)] * (spec.n_layers + 1)
    assert [w.shape for w in weights] == [(BATCH, h, TOKENS + 1, TOKENS + 1) for h in spec.heads]
    torch.testing.assert_close(streams[0][:, -1], module.class_token.expand(BATCH, -1), rtol=0, atol=0)
    torch.testing.assert_close(module.read(streams[-1][:, -1]), module(x), rtol=0, atol=1e-12)
    for w in weights:
        torch.testing.assert_close(w.sum(-1), torch.ones(w.shape[:-1], dtype=w.dtype))


@every_spec
def test_both_paths_agree_and_only_the_readable_one_is_taken_when_asked(spec, monkeypatch):
    module, x = model(spec), tokens(spec)
    mask = torch.rand(BATCH, TOKENS + 1, TOKENS + 1, generator=generator(0, "mask")) < 0.6
    fast = [module(x, m) for m in (None, mask)]
    monkeypatch.setattr(attention, "mix_fast", None)
    for m, expected in zip((None, mask), fast, strict=True):
        torch.testing.assert_close(module(x, m, reference=True), expected, rtol=0, atol=1e-12)
    stream = module.embed(x)
    for layer in module.layers:
        mixed = layer.mix(stream, mask, reference=True)
        assert torch.equal(mixed, layer.mix(stream, mask, return_weights=True)[0])
        assert torch.equal(layer.feed(mixed), layer(stream, mask, reference=True))


SMOOTH = [name for name, spec in SPECS.items() if spec.ffn != "relu" and spec.bias]


@pytest.mark.parametrize("name", SMOOTH)
def test_the_readable_path_has_every_derivative(name):
    """Forward mode against finite differences, second derivatives against two backward passes and a difference."""
    module, x = model(SPECS[name]), tokens(SPECS[name], n_tokens=2)[:1]
    direction = torch.randn(x.shape, dtype=x.dtype, generator=generator(0, "direction"))

    def answer(x):
        return module(x, reference=True)

    def backwards(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(module(x).sum(), x)[0]  # the fast path, for what it can do

    value, slope = torch.func.jvp(answer, (x,), (direction,))
    step = 1e-5 * direction
    torch.testing.assert_close(value, module(x), rtol=0, atol=1e-12)
    torch.testing.assert_close(slope, (module(x + step) - module(x - step)) / 2e-5, rtol=1e-6, atol=1e-7)

    hessian = torch.func.hessian(lambda x: answer(x).sum())(x).reshape(x.numel(), x.numel())
    twice = torch.autograd.functional.hessian(lambda x: answer(x).sum(), x).reshape_as(hessian)
    torch.testing.assert_close(hessian, twice, rtol=1e-9, atol=1e-11)
    change = (backwards(x + step) - backwards(x - step)).flatten() / 2e-5
    torch.testing.assert_close(hessian @ direction.flatten(), change, rtol=1e-5, atol=1e-6)


def test_the_readable_path_goes_through_torchs_transforms():
    spec = SPECS["gelu-linear-rope-norm-bias"]
    module, x = model(spec), tokens(spec)
    forward, backward = (
        torch.func.vmap(jacobian(lambda one: module(one[None], reference=True)[0]))(x)
        for jacobian in (torch.func.jacfwd, torch.func.jacrev)
    )
    assert forward.shape == (BATCH, spec.d_out, TOKENS, spec.d_in)
    torch.testing.assert_close(forward, backward, rtol=0, atol=1e-12)


@every_spec
def test_without_positions_order_does_not_matter(spec):
    module, x = model(spec), tokens(spec)
    order = torch.randperm(TOKENS, generator=generator(1, "order"))
    change = (module(x[:, order]) - module(x)).abs().max()
    assert (change < 1e-12) == (spec.position == "none")


@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 6),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.sampled_from(KINDS),
    st.booleans(),
    st.integers(0, 99),
)
def test_answers_do_not_depend_on_who_shares_the_batch(n_tokens, heads, ffn, norm, seed):
    spec = EncoderSpec(1, 1, 6, heads, d_ff=4, ffn=ffn, norm=norm)
    module = initialise(Encoder(spec, dtype=torch.float64), seed)
    x = torch.rand(4, n_tokens, 1, dtype=torch.float64, generator=generator(seed, "x"))
    order = torch.randperm(n_tokens, generator=generator(seed, "order"))
    torch.testing.assert_close(module(x[2:3, order]), module(x)[2:3], rtol=0, atol=1e-11)


def test_a_network_set_by_hand_needs_no_special_path():
    """One head whose score is large for the larger token returns the maximum; the class token is parked."""
    module = Encoder(EncoderSpec(1, 1, 3, (1,), d_head=1, d_ff=1, ffn="relu"), dtype=torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        module.embedding.weight[0, 0] = 1  # slot 0: the token
        module.class_token[:] = torch.tensor([-9.0, 0.0, 1.0])  # parked below every token; slot 2: a constant
        head = module.layers[0].attention
        head.q_proj.weight[0, 2] = 1e4
        head.k_proj.weight[0, 0] = 1
        head.v_proj.weight[0, 0] = 1
        head.out_proj.weight[1, 0] = 1  # slot 1: the answer
        module.head.weight[0, 1] = 1
    x = torch.rand(50, 7, 1, dtype=torch.float64, generator=generator(0, "x"))
    torch.testing.assert_close(module(x), x.amax(1), rtol=0, atol=1e-4)


class OneDevice(TorchDispatchMode):
    """Fail as soon as an operation touches a tensor that is not on the meta device."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves((args, kwargs, out)):
            assert not isinstance(tensor, torch.Tensor) or tensor.is_meta, f"{function} on {tensor.device}"
        return out


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.bias])
def test_everything_stays_on_the_device(name):
    spec = SPECS[name]
    with OneDevice():
        module = Encoder(spec, device="meta")
        x = torch.empty(BATCH, TOKENS, spec.d_in, device="meta")
        assert module(x).shape == (BATCH, spec.d_out)
        module.states(x)


def test_a_start_follows_its_seed():
    a, b = (initialise(Encoder(EncoderSpec(1, 1, 4, (1, 2), norm=True)), 3) for _ in range(2))
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert torch.equal(a.layers[1].norm_2.weight, torch.ones(4))
    assert not a.head.bias.any()
    assert a.class_token.abs().min() > 0


def test_a_spec_is_frozen_and_survives_json():
    spec = EncoderSpec(2, 1, 8, [2, 4], norm=True)
    assert (spec.heads, spec.n_layers, spec.d_ff) == ((2, 4), 2, 32)
    assert [spec.attention(layer).d_head for layer in range(2)] == [4, 2]
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.d_model = 8
    assert EncoderSpec(**json.loads(json.dumps(dataclasses.asdict(spec)))) == spec
    assert "heads=(2, 4)" in repr(Encoder(spec, device="meta"))


def test_head_dimensions_need_not_follow_the_width():
    spec = EncoderSpec(1, 1, 10, (3, 1), d_head=7, d_value=2).attention(0)
    assert (spec.d_head, spec.d_value, spec.n_heads, spec.d_model) == (7, 2, 3, 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": (4, 5)}, "heads[1]=5 does not divide d_model=16; nearest divisors: 4, 8; or give d_head"),
        ({"heads": (0,)}, "heads[0]=0 must be a positive integer; nearest: 1"),
        ({"heads": (2, 2.5)}, "heads[1]=2.5 must be a positive integer; nearest: 2"),
        ({"heads": ()}, "heads=() must be a sequence of head counts, one per layer; nearest: (1,)"),
        ({"heads": 4}, "heads=4 must be a sequence of head counts, one per layer; nearest: (4,)"),
        ({"heads": "12"}, "heads='12' must be a sequence of head counts"),
        ({"d_in": 0}, "d_in=0 must be a positive integer; nearest: 1"),
        ({"d_out": None}, "d_out=None must be a positive integer"),
        ({"d_model": 7.6}, "d_model=7.6 must be a positive integer; nearest: 8"),
        ({"d_head": -1}, "d_head=-1 must be a positive integer; nearest: 1"),
        ({"d_value": 0}, "d_value=0 must be a positive integer; nearest: 1"),
        ({"d_ff": 0}, "d_ff=0 must be a positive integer; nearest: 1"),
        ({"ffn": "glu"}, "unknown ffn 'glu'; did you mean 'gelu'? known: gelu, relu, bilinear, swiglu"),
        ({"embedding": "conv"}, "unknown embedding 'conv'; known: linear, mlp"),
        ({"position": "ropes"}, "unknown position 'ropes'; did you mean 'rope'? known: none, rope, alibi"),
        ({"norm": 1}, "norm=1 must be True or False"),
        ({"bias": None}, "bias=None must be True or False"),
        (
            {"position": "rope", "heads": (2, 16)},
            "position='rope' turns pairs of dimensions, heads[1]=16 has d_head=1; nearest d_head: 2",
        ),
        ({"position": "rope", "d_head": 5}, "heads[0]=4 has d_head=5; nearest d_head: 4, 6"),
    ],
)
def test_bad_arguments_are_named_with_their_nearest_valid_choice(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        EncoderSpec(**{"d_in": 2, "d_out": 1, "d_model": 16, "heads": (4,)} | options)


@pytest.mark.parametrize(
    ("x", "mask", "message"),
    [
        (torch.zeros(2, 5, 3), None, "x must have shape [B, T, d_in=2], not [2, 5, 3]"),
        (torch.zeros(5, 2), None, "x must have shape [B, T, d_in=2], not [5, 2]"),
        (torch.zeros(2, 5, 2), torch.ones(5, 5, dtype=torch.bool), "mask must have shape [T, T] = [6, 6]"),
    ],
)
def test_bad_inputs_are_named(x, mask, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Encoder(EncoderSpec(2, 1, 4, (1,)))(x, mask)
