import math

import pytest
import torch

from manyheads.models import Encoder, EncoderSpec
from manyheads.models.seeds import generator, initialise
from manyheads.theory import states


def encoder(d=2, E=8, heads=(2,), sharper=1.0, seed=0, **options):
    spec = EncoderSpec(d_in=d, d_out=1, d_model=E, heads=heads, **options)
    network = initialise(Encoder(spec, dtype=torch.float64), seed)
    network.layers[0].attention.q_proj.weight.data *= sharper
    return network


def draw(*shape, seed=0):
    return 2 * torch.rand(shape, dtype=torch.float64, generator=generator(seed, "states")) - 1


@pytest.mark.parametrize("options", [{}, {"embedding": "mlp"}, {"norm": True}, {"position": "alibi"}, {"bias": True}])
def test_a_decoder_of_the_state_gives_the_encoders_answer(options):
    network, x = encoder(**options), draw(5, 2)
    state = states.encoder_state(network)(x)
    answer = network.read(network.layers[0].feed(state[None]))
    torch.testing.assert_close(answer, network(x[None]), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"E": 16}, 6),  # two heads, each a mean token of 2 numbers and the weight of the class token
        ({"E": 16, "heads": (1,)}, 3),
        ({"E": 4}, 4),
        ({"E": 16, "embedding": "mlp"}, 16),
        ({"E": 16, "embedding": "mlp", "d_head": 3}, 6),
    ],
)
def test_the_reduced_state_loses_nothing(options, size):
    network = encoder(**options)
    state, reduced = states.encoder_state(network), states.encoder_state(network, reduced=True)
    x = draw(10, 2, 7, 2)
    for first, second in x:
        assert reduced(first).shape == (size,)
        full, short = ((f(first) - f(second)).norm().item() for f in (state, reduced))
        assert full == pytest.approx(short, rel=1e-10)


@pytest.mark.parametrize("E", [8, 16, 32])
def test_the_rank_of_the_state_map(E):
    """With a linear embedding it stays H (d + 1) whatever E; with a network it grows with E until T d is reached."""
    x = draw(3, 8, 2)
    assert states.state_rank(states.encoder_state(encoder(E=E)), x).tolist() == [6] * 3
    nonlinear = states.encoder_state(encoder(E=E, embedding="mlp", d_ff=64))
    assert states.state_rank(nonlinear, x).tolist() == [min(E, 16)] * 3


def test_the_rank_of_simple_maps():
    x = draw(4, 3, 2)
    assert states.state_rank(lambda one: one, x).tolist() == [6] * 4
    assert states.state_rank(lambda one: one.mean(0), x[0]) == 2
    assert states.state_rank(lambda one: one.sum().sin(), x).tolist() == [1] * 4


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_adds_no_rank(dtype):
    x = draw(4, 8, 2).to(dtype)
    turn = torch.linalg.qr(draw(16, 16)).Q.to(dtype)
    flat = turn[:, :5] @ turn[:5]
    assert states.state_rank(lambda one: (one.flatten() @ flat).sin(), x).tolist() == [5] * 4
    network = encoder(E=16, heads=(1,)).to(dtype)
    assert states.encoder_state(network, reduced=True)(x[0]).shape == (3,)


def test_a_tolerance_may_be_chosen():
    shrink = torch.tensor([1.0, 1e-3, 1e-6, 1e-12], dtype=torch.float64)
    ranks = [int(states.state_rank(lambda one: one[:, 0] * shrink, draw(4, 1), t)) for t in (None, 0, 1e-5, 0.1)]
    assert ranks == [3, 4, 2, 1]


def steepness(network, points, seed, reach):
    """Largest ratio of (change of derivative) to (distance) found on random pairs ``reach`` apart."""
    derivative = torch.func.vmap(torch.func.jacrev(states.encoder_state(network)))
    x = draw(*points, seed=seed)
    y = (x + reach * draw(*points, seed=seed + 1)).clamp(-1, 1)
    with torch.no_grad():
        change = (derivative(x) - derivative(y)).flatten(2)
    return torch.linalg.matrix_norm(change, 2) / (x - y).flatten(1).norm(dim=1)


@pytest.mark.parametrize("reach", [1e-3, 0.3, 2.0])
@pytest.mark.parametrize("sharper", [0.3, 1, 5, 30])
@pytest.mark.parametrize("options", [{}, {"embedding": "mlp"}, {"position": "alibi", "bias": True}, {"d_value": 3}])
def test_the_derivative_changes_no_faster_than_stated(options, sharper, reach):
    network = encoder(sharper=sharper, **options)
    bound = states.jacobian_lipschitz(network, -1.0, 1.0)
    for T in (1, 2, 9):
        assert steepness(network, (60, T, 2), T, reach).max() <= bound


def by_hand(d, score, value, embedding="linear"):
    """One head of dimension 4 that scores tokens by ``score`` . x and reads ``value`` . x, the class token left out.

    With an embedding network, d = 1 and x becomes gelu(x).
    """
    network = encoder(d=d, E=d + 2, heads=(1,), d_head=4, embedding=embedding, d_ff=1)
    for parameter in network.parameters():
        parameter.data.zero_()
    one, flag, attention = d, d + 1, network.layers[0].attention
    if embedding == "mlp":
        network.embedding.up_proj.weight.data[0, 0] = 1
    last = network.embedding if embedding == "linear" else network.embedding.down_proj
    last.weight.data[:d] = torch.eye(d)
    last.bias.data[one] = network.class_token.data[one] = network.class_token.data[flag] = 1
    attention.q_proj.weight.data[0, one] = 2  # the root of d_head
    attention.k_proj.weight.data[0, :d] = torch.tensor(score)
    attention.k_proj.weight.data[0, flag] = -100
    attention.v_proj.weight.data[0, :d] = torch.tensor(value)
    attention.out_proj.weight.data[0, 0] = 1
    return network


def curvature(network, x):
    """Norm of the second derivative of the first coordinate of the state, T d squared numbers."""
    state = states.encoder_state(network)
    second = torch.func.jacrev(torch.func.jacrev(lambda one: state(one)[0]))(x)
    return torch.linalg.matrix_norm(second.reshape(x.numel(), x.numel()), 2).item()


def test_the_constant_is_attained():
    """Two tied tokens that move apart: the covariance of score and value is as large as it can be."""
    network = by_hand(1, [1.0], [3.0])
    bound = states.jacobian_lipschitz(network, -0.01, 0.01)
    assert 0.98 * bound < curvature(network, torch.zeros(2, 1, dtype=torch.float64)) <= bound


def test_the_constant_is_attained_with_an_embedding_network():
    """Where gelu bends most."""
    network = by_hand(1, [0.0], [1.0], "mlp")
    found = curvature(network, torch.zeros(1, 1, dtype=torch.float64))
    assert found == pytest.approx(states.jacobian_lipschitz(network, -1.0, 1.0), rel=1e-9)


def test_the_bounds_on_the_derivatives_of_a_score():
    """Against all points of a line, for one hidden unit (sharp) and for many (safe)."""
    x, readout = torch.linspace(-30, 30, 60_001, dtype=torch.float64)[:, None], draw(1, 8)
    for d_ff, tightness in ((1, 0.99), (40, 0.0)):
        network = encoder(d=1, embedding="mlp", d_ff=d_ff)
        slope = torch.func.jacrev(lambda u: readout @ network.embedding(u))  # noqa: B023
        bounds = states._derivatives(network, readout)
        for bound, derivative in zip(bounds, (slope, torch.func.jacrev(slope)), strict=True):
            found = torch.func.vmap(derivative)(x).abs().max().item()
            assert tightness * bound < found <= bound


def test_the_constant_is_not_far_off_for_a_sharp_head():
    """Two tied tokens that move apart in score, a third one with another value: the third moment is large."""
    network = by_hand(2, [50.0, 0.0], [0.0, 1.0])
    bound = states.jacobian_lipschitz(network, -1.0, 1.0)
    tokens = torch.tensor([[0, 1], [0, 1], [0, -1]], dtype=torch.float64)
    assert bound / 8 < curvature(network, tokens) <= bound


def test_the_constants_of_gelu():
    u = torch.linspace(-10, 10, 200_001, dtype=torch.float64)
    slope = torch.func.vmap(torch.func.grad(torch.nn.functional.gelu))
    curvature = torch.func.vmap(torch.func.grad(torch.func.grad(torch.nn.functional.gelu)))
    assert 0.998 * states.GELU_SLOPE < slope(u).abs().max() <= states.GELU_SLOPE
    assert float(curvature(u).abs().max()) == pytest.approx(states.GELU_CURVATURE, rel=1e-12)


def test_a_token_that_cannot_move_the_state_has_constant_zero():
    network = encoder()
    network.layers[0].attention.v_proj.weight.data.zero_()
    assert states.jacobian_lipschitz(network, -1.0, 1.0) == 0
    assert math.isfinite(states.jacobian_lipschitz(encoder(sharper=1e6), -1.0, 1.0))
    assert states.jacobian_lipschitz(encoder(sharper=1e200), -1.0, 1.0) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: states.encoder_state(encoder(heads=(1, 1))), r"has 2 layers; .* heads=\(H,\)"),
        (lambda: states.jacobian_lipschitz(encoder(heads=(1, 1)), -1, 1), "has 2 layers"),
        (lambda: states.jacobian_lipschitz(encoder(norm=True), -1, 1), "norm=True, position='none'"),
        (lambda: states.jacobian_lipschitz(encoder(), 1, -1), "lower=1 must be below upper=-1"),
        (lambda: states.jacobian_lipschitz(encoder(position="rope"), -1, 1), "position='rope'"),
        (lambda: states.jacobian_lipschitz(encoder(), -math.inf, 1), "lower=-inf must be below upper=1, both finite"),
        (lambda: states.jacobian_lipschitz(encoder(), 0, math.nan), "upper=nan"),
        (lambda: states.jacobian_lipschitz(encoder().to("meta"), -1, 1), "meta device"),
        (lambda: states.encoder_state(encoder().to("meta"), reduced=True), "meta device"),
        (lambda: states.state_rank(torch.sin, draw(3)), r"x has shape \[3\]; expected \[..., T, d\]"),
        (lambda: states.state_rank(torch.sqrt, torch.zeros(3, 2)), "derivative .* not finite"),
        (lambda: states.state_rank(torch.sin, draw(3, 2), -1), "relative_tolerance=-1"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
