"""Proofs: enclosures hold fifty digits, what is proved is there, and what is no collision is refused."""

import dataclasses
import math
from functools import cache

import mpmath
import numpy as np
import pytest
import torch
from torch.func import jacrev, vmap

from manyheads.models import Encoder, EncoderSpec
from manyheads.models.seeds import generator, initialise
from manyheads.theory import collisions, intervals, rigorous, states
from manyheads.theory.intervals import Interval, concatenate, exact

A = torch.tensor([[-1.0, 0.25], [0.0, -0.75]], dtype=torch.float64)
KINDS = {
    "mlp": {},
    "linear": {"embedding": "linear"},  # mean tokens are shorter than values
    "short values": {"embedding": "linear", "d_value": 2},
    "long values": {"d_value": 8},  # the state is shorter than both
    "biases": {"bias": True},
}


def encoder(seed=0, **options):
    spec = EncoderSpec(**{"d_in": 2, "d_out": 1, "d_ff": 64, "d_model": 8, "heads": (2,), "embedding": "mlp"} | options)
    network = initialise(Encoder(spec, dtype=torch.float64), seed)
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            parameter.data.normal_(0, 0.3, generator=generator(seed, "tests of proofs", name))
    return network


def draw(*shape, seed=0):
    return 2 * torch.rand(shape, dtype=torch.float64, generator=generator(seed, "tests of proofs")) - 1


@cache
def found(kind):
    """A layer, and a pair that it confuses."""
    network = encoder(**KINDS[kind])
    state = states.encoder_state(network, reduced=True)
    pair = collisions.certify(state, lambda x: (x @ A @ x.mT).max(), draw(6, 2), -1.0, 1.0, n_starts=3, n_steps=40)
    return network, pair


def prove(network, pair, **options):
    return rigorous.prove(network, pair.x, pair.x_other, A, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_that_a_walk_found_is_proved(kind):
    network, pair = found(kind)
    proof = prove(network, pair)
    assert proof.radius < 1e-7
    assert 0.1 < 0.99 * pair.target_gap / 2 < proof.error_at_least <= pair.target_gap / 2
    assert prove(network, dataclasses.replace(pair, x=pair.x_other, x_other=pair.x)) == proof


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_that_was_moved_is_refused(kind):
    network, pair = found(kind)
    moved = pair.x.clone()
    moved[1] -= 1e-3 * moved[1].sign()
    assert prove(network, dataclasses.replace(pair, x=moved)) is None


@pytest.mark.parametrize(
    "name", ["class_token", "embedding.up_proj.bias", "embedding.down_proj.weight", "layers.0.attention.k_proj.weight"]
)
def test_a_pair_of_another_layer_is_refused(name):
    _, pair = found("mlp")
    other = encoder()
    other.get_parameter(name).data.flatten()[1] += 1e-2
    assert prove(other, pair) is None


def test_the_largest_distance_is_obeyed():
    network, pair = found("mlp")
    radius = prove(network, pair).radius
    assert prove(network, pair, within=radius) is not None
    assert prove(network, pair, within=radius / 2) is None


def test_nothing_is_proved_where_coordinates_have_no_room_or_the_jacobian_no_inverse():
    _, pair = found("mlp")
    corner = torch.ones(6, 2, dtype=torch.float64)
    assert rigorous.prove(encoder(), corner, corner, A) is None
    blind = encoder()
    blind.layers[0].attention.v_proj.weight.data.zero_()
    assert prove(blind, pair) is None
    blind.layers[0].attention.v_proj.weight.data.fill_(1e300)
    assert prove(blind, pair) is None


def test_an_input_and_itself_collide_without_consequence():
    x = draw(6, 2, seed=3)
    assert rigorous.prove(encoder(), x, x, A).error_at_least == 0


def linear(layer, column):
    bias = [0] * len(layer.weight) if layer.bias is None else layer.bias.tolist()
    return [mpmath.fdot(row, column) + b for row, b in zip(layer.weight.tolist(), bias, strict=True)]


def precise(network, x):
    """The class token's state ``[E]`` for ``x`` [T, d], straight from the definition, in mpmath's numbers."""
    attention = network.layers[0].attention
    d_head, d_value = attention.spec.d_head, attention.spec.d_value
    class_token = [mpmath.mpf(c) for c in network.class_token.tolist()]
    if network.spec.embedding == "linear":
        stream = [linear(network.embedding, token) for token in x]
    else:
        hidden = [[u * mpmath.ncdf(u) for u in linear(network.embedding.up_proj, token)] for token in x]
        stream = [linear(network.embedding.down_proj, u) for u in hidden]
    stream.append(class_token)
    query = linear(attention.q_proj, class_token)
    keys, values = ([linear(layer, z) for z in stream] for layer in (attention.k_proj, attention.v_proj))
    reads = []
    for head in range(attention.spec.n_heads):
        part = slice(head * d_head, (head + 1) * d_head)
        raised = [mpmath.exp(mpmath.fdot(query[part], key[part]) / mpmath.sqrt(d_head)) for key in keys]
        for column in range(head * d_value, (head + 1) * d_value):
            reads.append(mpmath.fdot(raised, [value[column] for value in values]) / mpmath.fsum(raised))
    return [c + y for c, y in zip(class_token, linear(attention.out_proj, reads), strict=True)]


def numbers(x):
    return [[mpmath.mpf(number) for number in token] for token in x.tolist()]


def to_state(network, n):
    """Matrix ``[E, n]`` that turns differences of what is read into differences of states."""
    weight = {name: parameter.detach().numpy() for name, parameter in network.named_parameters()}
    out = exact(weight["layers.0.attention.out_proj.weight"])
    if n == out.shape[1]:
        return out
    if n == len(out.low):
        return exact(np.eye(n))
    basis = [weight["embedding.weight"], (exact(weight["class_token"]) - weight["embedding.bias"])[:, None]]
    basis = concatenate([exact(basis[0]), basis[1]], axis=1)
    values = np.split(weight["layers.0.attention.v_proj.weight"], 2)
    return concatenate([out[:, 4 * h : 4 * h + 4] @ values[h] @ basis for h in range(2)], axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_holds_fifty_digits(kind):
    network, pair = encoder(**KINDS[kind]), draw(2, 3, 2, seed=1)
    read, _ = rigorous._reads(network)(exact(pair.numpy()))
    enclosed = (to_state(network, read.shape[1]) @ (read[0] - read[1])[:, None])[:, 0]
    assert (enclosed.high - enclosed.low).max() < 1e-12
    with mpmath.workdps(50):
        first, second = (precise(network, numbers(x)) for x in pair)
        for low, high, a, b in zip(enclosed.low, enclosed.high, first, second, strict=True):
            assert low <= a - b <= high


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("radius", [1e-12, 1e-2])
def test_the_jacobian_is_enclosed_over_the_whole_cube(kind, radius):
    network, pair = encoder(**KINDS[kind]), draw(2, 3, 2, seed=2)
    _, slopes = rigorous._reads(network)(Interval(pair.numpy() - radius, pair.numpy() + radius))
    enclosed = to_state(network, slopes.shape[0]) @ slopes
    assert (enclosed.high - enclosed.low).max() < 1e-11 + 300 * radius
    jacobian = vmap(jacrev(states.encoder_state(network)))
    moves = radius * torch.cat([torch.zeros(1, 2, 3, 2), draw(40, 2, 3, 2), draw(40, 2, 3, 2).sign()])
    with torch.no_grad():
        first, second = (jacobian(points).flatten(2).numpy() for points in (pair + moves).unbind(1))
    inside = np.concatenate([first, -second], axis=2)
    assert (inside >= enclosed.low - 1e-13).all()
    assert (inside <= enclosed.high + 1e-13).all()
    assert np.ptp(inside, axis=0).max() > radius / 10  # the derivative does change over the cube


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_the_collision_is_there_to_thirty_digits(kind):
    """Steps of least length in all coordinates, in fifty digits: they end at most as far as those that are proved."""
    network, pair = found(kind)
    state = states.encoder_state(network)
    slopes = [jacrev(state)(x).flatten(1) for x in (pair.x, pair.x_other)]
    inverse = torch.linalg.pinv(torch.cat([slopes[0], -slopes[1]], dim=1).detach(), rtol=1e-9)
    with mpmath.workdps(50):
        inverse = mpmath.matrix(inverse.tolist())
        start = mpmath.matrix([n for x in (pair.x, pair.x_other) for n in x.flatten().tolist()])
        flat = start
        for _ in range(4):
            points = [[list(flat[k + 2 * t : k + 2 * t + 2]) for t in range(6)] for k in (0, 12)]
            difference = mpmath.matrix(precise(network, points[0])) - mpmath.matrix(precise(network, points[1]))
            if mpmath.norm(difference) < 1e-30:
                break
            flat = flat - inverse * difference
        assert mpmath.norm(difference) < 1e-30
        assert mpmath.norm(flat - start) <= math.sqrt(8) * prove(network, pair).radius


def test_the_targets_of_the_whole_cube_count():
    """With E = T d numbers the only collision near an input is with itself: no gap, whatever that of the pair is."""
    x = draw(4, 2, seed=4)
    other = x * (1 + 1e-5)
    assert abs(float((x @ A @ x.mT).max() - (other @ A @ other.mT).max())) > 1e-6
    proof = rigorous.prove(encoder(), x, other, A, within=1e-2)
    assert proof.radius > 1e-6
    assert proof.error_at_least == 0


def test_a_wrong_derivative_of_gelu_is_caught(monkeypatch):
    """The planted fault: Phi alone as the slope."""
    monkeypatch.setattr(rigorous, "normal_density", lambda x: 0.0 * intervals.normal_density(x))
    with pytest.raises(AssertionError):
        test_the_jacobian_is_enclosed_over_the_whole_cube("mlp", 1e-12)


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"heads": (2, 2)}, {}, r"the encoder has 2 layers"),
        ({"norm": True}, {}, "norm=True, position='none'; nearest: norm=False, position='none'"),
        ({"position": "alibi"}, {}, "position='alibi'"),
        ({}, {"x": torch.zeros(6, 3)}, r"x and x_other have shapes \(6, 3\) and \(6, 2\)"),
        ({}, {"x_other": torch.zeros(5, 2)}, r"\(5, 2\); expected \[T, d_in=2\] twice"),
        ({}, {"x": torch.zeros(0, 2), "x_other": torch.zeros(0, 2)}, r"\(0, 2\)"),
        ({}, {"x": torch.full((6, 2), 1.5)}, r"outside the box \[-1.0, 1.0\]; nearest: x.clamp"),
        ({}, {"x": torch.full((6, 2), math.nan)}, "outside the box"),
        ({}, {"lower": math.nan}, "outside the box"),
        ({}, {"matrix": torch.eye(3)}, r"matrix has shape \(3, 3\); expected \(2, 2\)"),
        ({}, {"matrix": torch.full((2, 2), math.inf)}, "matrix holds numbers that are not finite"),
        ({}, {"within": 0.0}, "within=0.0 must be a finite number above 0"),
    ],
)
def test_bad_arguments_are_refused(options, change, message):
    arguments = {"x": torch.zeros(6, 2), "x_other": torch.zeros(6, 2), "matrix": A} | change
    with pytest.raises(ValueError, match=message):
        rigorous.prove(encoder(**options), **arguments)


def test_an_encoder_without_numbers_is_refused():
    network = Encoder(EncoderSpec(d_in=2, d_out=1, d_model=8, heads=(2,)), device="meta")
    with pytest.raises(ValueError, match="meta device"):
        rigorous.prove(network, torch.zeros(6, 2), torch.zeros(6, 2), A)
