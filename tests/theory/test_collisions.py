"""Certificates: the pair is what it says it is, no decoder beats the bound, and there is none where none can be."""

import math

import pytest
import torch
from scipy.optimize import linprog

from manyheads.models import Encoder, EncoderSpec
from manyheads.models.seeds import generator, initialise
from manyheads.theory import collisions, states

A = torch.randn(2, 2, dtype=torch.float64, generator=generator(1, "collisions")) / 2


def draw(*shape, seed=0):
    return 2 * torch.rand(shape, dtype=torch.float64, generator=generator(seed, "tests of collisions")) - 1


def max_pair(x):
    return (x @ A[: x.shape[1], : x.shape[1]] @ x.mT).max()


# The gradient is (A x_t, A' x_s) at two tokens, or (A + A') x at one: at most 2 |A| times the length of a token.
LIPSCHITZ = 2 * float(torch.linalg.matrix_norm(A, 2)) * math.sqrt(2)


def encoder(E, T=16, embedding="mlp", seed=0, heads=2):
    spec = EncoderSpec(d_in=2, d_out=1, d_model=E, heads=(heads,), embedding=embedding, d_ff=64)
    return initialise(Encoder(spec, dtype=torch.float64), seed)


def certify(attention_map, x0, target=max_pair, **options):
    return collisions.certify(attention_map, target, x0, -1.0, 1.0, **{"n_starts": 4, "n_steps": 60, **options})


def check(certificate, attention_map, target=max_pair, residual=1e-10):
    """The check that a faulty walk must fail."""
    x, other = certificate.x, certificate.x_other
    assert x.abs().max() <= 1, "outside the box"
    assert other.abs().max() <= 1, "outside the box"
    distance = (attention_map(x) - attention_map(other)).norm().item()
    assert distance == pytest.approx(certificate.state_distance, abs=1e-13)
    assert distance <= residual, f"residual {distance:.1e}"
    assert float(target(x) - target(other)) == pytest.approx(certificate.target_gap, abs=1e-12)


def softmax_mean(x):
    """One head on two tokens of one number: the state is a single number."""
    return ((2 * x).softmax(0) * x.sin()).sum(0)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_gap_closes_as_the_state_grows_to_the_size_of_the_input(seed):
    x0, gaps = draw(16, 2, seed=seed), []
    for E in (8, 16, 32, 40):
        state = states.encoder_state(encoder(E, seed=seed))
        certificate = certify(state, x0, n_starts=8)
        check(certificate, state)
        gaps.append(certificate.error_bound(1.0))
    assert gaps[0] > 0.2
    assert gaps[0] > gaps[1] > 0.1
    assert max(gaps[2:]) < 1e-12  # 32 = T d


@pytest.mark.parametrize("T", [4, 8, 16])
@pytest.mark.parametrize("seed", range(5))
def test_a_layer_that_keeps_everything_barely_leaves_no_gap(T, seed):
    """At E = T d the Jacobian has full rank, though its smallest singular value may be 1e-10 of its largest."""
    state = states.encoder_state(encoder(2 * T, seed=seed), reduced=True)
    certificate = certify(state, draw(T, 2, seed=seed), n_starts=6, n_steps=80)
    check(certificate, state)
    assert certificate.target_gap < 1e-12


@pytest.mark.parametrize(("embedding", "E", "least"), [("mlp", 24, 0.02), ("linear", 16, 0.2)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_weak_directions_do_not_stop_a_walk_that_has_others(embedding, E, least, seed):
    """Below T d = 32 there is room, though singular values go down to 1e-9 of the largest here too."""
    state = states.encoder_state(encoder(E, embedding=embedding, seed=seed), reduced=True)
    certificate = certify(state, draw(16, 2, seed=seed), n_steps=80)
    check(certificate, state)
    assert certificate.target_gap / 2 > least


@pytest.mark.parametrize(
    ("weak", "columns", "expected"),
    [
        (1e-10, 2, [0, 0]),  # full rank: nowhere to go
        (1e-12, 2, [0, 0]),  # zero or not: no walk on rounding
        (1e-15, 2, [0, 1]),  # zero
        (0.0, 2, [0, 1]),
        (1e-10, 3, [0, 0, 1]),  # a weak direction is a constraint like others
        (1e-12, 3, [0, 0, 0]),
        (0.0, 3, [0, 0.5**0.5, 0.5**0.5]),
    ],
)
def test_walkers_move_only_where_the_null_space_is_clear(weak, columns, expected):
    box = torch.ones(columns, dtype=torch.float64)
    fibre = collisions._Fibre(lambda flat: flat[:2], -box, box, 1e-11)
    jacobian = torch.zeros(2, columns, dtype=torch.float64)
    jacobian[0, 0], jacobian[1, 1] = 1, weak
    turn = torch.linalg.qr(draw(2, 2))[0]
    moves = fibre.tangent(0 * box[None], (turn @ jacobian)[None], box[None])
    assert moves[0].tolist() == pytest.approx(expected, abs=1e-5)


def test_a_coordinate_held_at_the_boundary_leaves_no_room_for_the_rest():
    """Three coordinates, two numbers kept: with one coordinate held, nothing is left, whatever rounding says."""
    box = torch.ones(3, dtype=torch.float64)
    fibre = collisions._Fibre(lambda flat: flat[:2], -box, box, 1e-11)
    jacobian = torch.tensor([[1.0, 1.0, 1.0], [0.0, 1e-10, 2e-10]], dtype=torch.float64)
    x, slope = torch.stack([0 * box, box * torch.tensor([0, 0, 1])]), torch.tensor([1.0, 0, 1]).double()
    inside, held = fibre.tangent(x, jacobian.repeat(2, 1, 1), slope)
    assert inside.tolist() == pytest.approx([6**-0.5, -2 * 6**-0.5, 6**-0.5], abs=1e-5)
    assert not held.any()


def test_a_linear_embedding_keeps_the_gap_whatever_the_width():
    for E in (8, 32, 64):
        state = states.encoder_state(encoder(E, embedding="linear"), reduced=True)
        certificate = certify(state, draw(16, 2))
        check(certificate, state)
        assert certificate.error_bound(1.0) > 0.2


def test_walkers_of_any_map_stay_on_the_fibre_and_in_the_box():
    maps = [softmax_mean, lambda x: x.mean(0), lambda x: (x**3).sum(0), lambda x: torch.stack([x.sin().sum(), x[0, 0]])]
    for attention_map in maps:
        x0 = draw(5, 2)
        certificate = certify(attention_map, x0)
        check(certificate, attention_map)
        assert certificate.target_gap > 0.1


def test_starts_at_a_corner_of_the_box_can_leave_it():
    x0 = torch.ones(6, 2, dtype=torch.float64)
    x0[3:] = -1
    certificate = certify(lambda x: x.mean(0), x0, n_starts=1)
    check(certificate, lambda x: x.mean(0))
    assert certificate.target_gap > 0.1


def test_cutting_off_at_the_boundary_is_caught(monkeypatch):
    """The planted fault: Newton ignores the box, and the point is clamped afterwards."""

    def clamping(self, x, jacobian, states, tolerance=None):
        for _ in range(collisions.NEWTON_STEPS):
            inverse = collisions._inverse(self.jacobian(x), torch.ones_like(x, dtype=torch.bool))
            x = x - collisions._apply(inverse, (self.state(x) - states)[..., None])
        return x.clamp(self.lower, self.upper), torch.ones_like(x[:, :1], dtype=torch.bool)

    state = states.encoder_state(encoder(8))
    check(certify(state, draw(16, 2)), state)
    monkeypatch.setattr(collisions._Fibre, "back", clamping)
    with pytest.raises(AssertionError, match="residual"):
        check(certify(state, draw(16, 2)), state)


def test_no_certificate_for_a_map_that_keeps_everything():
    for attention_map in (lambda x: x, lambda x: torch.cat([x, x.sin()]), lambda x: x.exp()):
        certificate = certify(attention_map, draw(4, 2), jacobian_lipschitz=3.0, target_lipschitz=LIPSCHITZ)
        assert certificate.target_gap == 0
        assert certificate.error_bound(0.0) == 0
        assert not certificate.exact_bound


def best_decoder_error(states_, targets, lipschitz):
    """Smallest largest error of any decoder with this Lipschitz constant on these points, by linear programming."""
    order = states_.argsort()
    s, f = states_[order].numpy(), targets[order].numpy()
    n = len(s)
    rows, limits = [], []
    for i in range(n):
        for sign in (1, -1):  # sign (y_i - f_i) <= error
            row = torch.zeros(n + 1)
            row[i], row[n] = sign, -1
            rows.append(row.numpy())
            limits.append(sign * f[i])
            if i + 1 < n:  # on a line, neighbours are enough
                row = torch.zeros(n + 1)
                row[i], row[i + 1] = sign, -sign
                rows.append(row.numpy())
                limits.append(lipschitz * (s[i + 1] - s[i]))
    found = linprog([0] * n + [1], A_ub=rows, b_ub=limits, bounds=[(None, None)] * n + [(0, None)])
    assert found.success
    return found.fun


@pytest.mark.parametrize("lipschitz", [0.0, 0.5, 2.0])
def test_no_decoder_beats_the_bound_on_a_tiny_case(lipschitz):
    """All decoders at once: two tokens of one number, a state of one number, the box on a grid."""
    certificate = certify(softmax_mean, draw(2, 1), torch.max)
    axis = torch.linspace(-1, 1, 13, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)[..., None]
    inputs = torch.cat([grid, certificate.x[None], certificate.x_other[None]])
    found, wanted = (torch.stack([f(x).squeeze() for x in inputs]) for f in (softmax_mean, torch.max))
    best = best_decoder_error(found, wanted, lipschitz)
    assert best >= certificate.error_bound(lipschitz) - 1e-9
    assert certificate.error_bound(lipschitz) > 0.07


def test_the_walk_finds_the_widest_gap_of_a_tiny_case():
    """All pairs of a fine grid whose states agree to a thousandth, against the pair that the walk found."""
    axis = torch.linspace(-1, 1, 601, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    state = torch.func.vmap(softmax_mean)(grid[..., None])[:, 0]
    bins = ((state + 1) / 1e-3).long()
    highest = torch.full((2001,), -2.0, dtype=torch.float64).scatter_reduce(0, bins, grid.amax(1), "amax")
    lowest = torch.full((2001,), 2.0, dtype=torch.float64).scatter_reduce(0, bins, grid.amax(1), "amin")
    certificate = certify(softmax_mean, draw(2, 1), torch.max, n_starts=16)
    assert certificate.target_gap == pytest.approx(float((highest - lowest).max()), abs=5e-3)


def test_the_bound_is_attained_by_the_decoder_in_the_middle():
    """For a map that knows only the mean, and a target that is one token, half the gap is all that can be said."""
    certificate = certify(lambda x: x.mean(0), draw(2, 1), lambda x: x[0, 0], n_starts=16)
    # At mean m the first token ranges over an interval of length 2 - 2 |m|: the worst is m = 0, the best error 1.
    assert certificate.error_bound(0.0) == pytest.approx(1, abs=0.05)
    assert certificate.error_bound(0.0) <= 1


def test_the_lipschitz_form():
    zero = torch.zeros(1, 1)
    certificate = collisions.Certificate(zero, zero, state_distance=0.1, target_gap=1.0)
    assert certificate.error_bound(2.0) == pytest.approx(0.4)
    assert certificate.error_bound(20.0) == 0
    assert certificate.exact_bound is None
    for value in (-1, math.nan, math.inf, True):
        with pytest.raises(ValueError, match=f"lipschitz={value}"):
            certificate.error_bound(value)


@pytest.mark.parametrize("embedding", ["linear", "mlp"])
def test_the_exact_form_for_encoders(embedding):
    network = encoder(8, embedding=embedding, heads=1)
    network.layers[0].attention.q_proj.weight.data *= 3
    state = states.encoder_state(network, reduced=True)
    constant = states.jacobian_lipschitz(network, -1.0, 1.0)
    certificate = certify(state, draw(12, 2), jacobian_lipschitz=constant, target_lipschitz=LIPSCHITZ)
    assert certificate.collision_radius < 1e-6
    assert certificate.exact_bound == pytest.approx(certificate.target_gap / 2, abs=1e-5)
    assert certificate.exact_bound <= certificate.target_gap / 2


def newton(pair):
    """The collision nearest to first order: Newton's steps of least length in all coordinates of a pair at once."""

    def difference(flat):
        x, other = flat.view(2, 3, 2)
        return softmax_mean(x) - softmax_mean(other)

    flat = pair.flatten()
    for _ in range(30):
        flat = flat - torch.linalg.pinv(torch.func.jacrev(difference)(flat)) @ difference(flat)
    assert difference(flat).norm() < 1e-14
    return flat.view_as(pair)


def test_an_exact_collision_lies_within_the_radius():
    """Push a pair apart on purpose, then look for the collision that the theorem promises, by Newton's method."""
    box = torch.full((6,), 3.0)
    fibre = collisions._Fibre(lambda flat: softmax_mean(flat.view(3, 2)), -box, box, 1e-11)
    certificate = certify(softmax_mean, draw(3, 2))
    constant = 1 + 2 * 1 + 2 * 2**2 / 2  # values sin x: derivatives at most 1, range 2; scores 2 x: slope 2
    proved = 0
    for seed, size in enumerate([3e-2, 1e-2, 1e-3, 1e-4]):
        pair = torch.stack([certificate.x.flatten(), certificate.x_other.flatten()])
        pair = pair + size * draw(2, 6, seed=seed)
        radius = collisions._collision_radius(fibre, pair, constant, (3, 2))
        if radius is None:
            continue
        proved += 1
        moved = float((newton(pair) - pair).norm())
        assert moved <= radius * (1 + 1e-6)
        assert moved > radius / 10
    assert proved >= 3


def test_for_a_linear_map_the_radius_is_that_of_one_newton_step():
    mean = torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    fibre = collisions._Fibre(lambda flat: mean @ flat, torch.full((2,), -1.0), torch.full((2,), 1.0), 1e-11)
    pair = torch.tensor([[0.5, -0.5], [-0.5, 0.51]], dtype=torch.float64)  # means 0 and 0.005
    radius = collisions._collision_radius(fibre, pair, 0.0, (2, 1))
    assert radius == pytest.approx(0.005, rel=1e-9)  # four coordinates move by 0.0025 each


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"jacobian_lipschitz": 100.0},
        {"target_lipschitz": LIPSCHITZ},
        {"jacobian_lipschitz": 1e40, "target_lipschitz": LIPSCHITZ},  # too curved for the theorem
        {"jacobian_lipschitz": lambda centre, radius: math.inf, "target_lipschitz": LIPSCHITZ},
    ],
)
def test_no_exact_bound_without_a_proof(options):
    certificate = certify(states.encoder_state(encoder(8)), draw(8, 2), n_steps=20, **options)
    assert certificate.exact_bound is None
    assert certificate.collision_radius is None
    assert certificate.error_bound(1.0) > 0


def test_no_exact_bound_where_the_derivative_is_not_onto():
    """The same number twice: states form a line in the plane, and a Newton step cannot reach every point."""
    certificate = certify(
        lambda x: torch.stack([x.sum(), x.sum()]), draw(4, 2), jacobian_lipschitz=0.0, target_lipschitz=LIPSCHITZ
    )
    assert certificate.target_gap > 0.1
    assert certificate.exact_bound is None


def test_a_constant_over_a_ball_is_asked_for_with_centre_and_radius():
    asked = []

    def constant(centre, radius):
        asked.append((centre.shape, radius))
        return 0.0

    certificate = certify(
        lambda x: x.mean(0), draw(4, 2), jacobian_lipschitz=constant, target_lipschitz=LIPSCHITZ, n_steps=20
    )
    assert certificate.exact_bound > 0
    assert all(shape == (4, 2) and 0 < radius < 1e-9 for shape, radius in asked)


def test_the_same_seed_gives_the_same_pair_and_boxes_may_differ_by_coordinate():
    lower, upper = torch.tensor([-1.0, 0.0]).double(), torch.tensor([1.0, 0.5]).double()
    x0 = torch.full((5, 2), 0.25, dtype=torch.float64)
    first, second = (
        collisions.certify(softmax_mean, max_pair, x0, lower, upper, n_starts=3, n_steps=20) for _ in range(2)
    )
    assert torch.equal(first.x, second.x)
    assert ((first.x >= lower) & (first.x <= upper) & (first.x_other >= lower) & (first.x_other <= upper)).all()


def test_a_coarse_type_works_with_a_coarse_tolerance():
    certificate = certify(softmax_mean, draw(5, 2).float(), torch.max, tolerance=1e-5)
    assert certificate.x.dtype == torch.float32
    assert (softmax_mean(certificate.x) - softmax_mean(certificate.x_other)).norm() < 3e-5
    assert certificate.target_gap > 0.1


@pytest.mark.parametrize("broken", ["map", "target"])
def test_a_map_or_target_without_a_value_is_refused(broken):
    functions = {"map": lambda x: x.mean(0), "target": max_pair} | {broken: lambda x: x.sqrt().sum()}
    with pytest.raises(ValueError, match=r"not finite at .* start"):
        certify(functions["map"], -draw(3, 2).abs(), functions["target"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x0": torch.zeros(3)}, r"x0 has shape \(3,\)"),
        ({"x0": torch.zeros(3, 2, dtype=torch.int64)}, "torch.int64"),
        ({"x0": torch.full((3, 2), 2.0)}, "x0 lies outside the box"),
        ({"lower": 1.0}, "lower must be below upper"),
        ({"n_starts": 0}, "n_starts=0"),
        ({"step": 0.0}, "step=0.0 must be a finite number above 0"),
        ({"tolerance": -1.0}, "tolerance=-1.0"),
        ({"target_lipschitz": -1.0}, "target_lipschitz=-1.0"),
        ({"jacobian_lipschitz": -1.0}, "jacobian_lipschitz=-1.0"),
        ({"jacobian_lipschitz": math.nan}, "jacobian_lipschitz=nan"),
        ({"n_starts": True}, "n_starts=True"),
        ({"step": math.nan}, "step=nan"),
        ({}, r"tolerance=1e-11 is finer than torch.float32 can tell; nearest: 1.2e-07, or .* float64"),
        ({"x0": torch.zeros(3, 2, dtype=torch.float16)}, "torch.float16"),
        ({"x0": torch.zeros(0, 2)}, r"x0 has shape \(0, 2\)"),
        ({"x0": torch.zeros(3, 2, device="meta")}, "meta device"),
        ({"x0": torch.full((3, 2), math.nan)}, "x0 lies outside the box"),
        ({"lower": -math.inf}, "lower and upper must be finite"),
        ({"upper": math.nan}, "lower and upper must be finite"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    arguments = {"x0": torch.zeros(3, 2), "lower": -1.0, "upper": 1.0} | change
    with pytest.raises(ValueError, match=message):
        collisions.certify(lambda x: x.mean(0), max_pair, **arguments)
