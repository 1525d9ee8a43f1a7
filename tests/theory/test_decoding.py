import math
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.theory import decoding


@given(st.integers(1, 3), st.integers(1, 3), st.integers(2, 9), st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_the_decoder_keeps_its_tolerance(per_coordinate, n_state, levels, seed):
    decoder = decoding.digit_decoder(per_coordinate * n_state, n_state, levels)
    z = torch.rand(200, per_coordinate * n_state, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    z[0], z[1] = 0, 1  # the edges
    error = (decoder.decode(decoder.encode(z)) - z).abs().max()
    assert error <= decoder.tolerance + 2**-50
    assert error > 0.8 * decoder.tolerance


@pytest.mark.parametrize(("per_coordinate", "levels"), [(2, 7), (1, 10**6), (2, 1000), (6, 10), (19, 2)])
def test_every_code_word_is_decoded_exactly(per_coordinate, levels):
    """Up to the largest decoders, at both ends of the state and across a carry of every digit."""
    decoder = decoding.digit_decoder(per_coordinate, 1, levels)
    last = levels**per_coordinate - 1
    carries = [levels**digit + step for digit in range(per_coordinate) for step in (-1, 0)]
    words = torch.tensor(sorted({0, 1, last // 2, last - 1, last, *carries}))[:24, None]
    places = levels ** torch.arange(per_coordinate - 1, -1, -1)
    z = ((words // places) % levels + 0.5).double() / levels
    state = decoder.encode(z)
    assert (state >= 0).all()
    assert (state < 1).all()
    for word, value in zip(state, z, strict=True):  # one at a time: a million knots are 8 MB each
        assert torch.equal(decoder.decode(word), value)


def test_a_decoder_of_a_million_knots_keeps_its_tolerance():
    decoder = decoding.digit_decoder(2, 1, 1000)
    z = torch.rand(16, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    z[0], z[1] = 0, 1
    assert (decoder.decode(decoder.encode(z)) - z).abs().max() <= decoder.tolerance + 2**-50


def test_coarse_numbers_are_coded_like_fine_ones():
    decoder = decoding.digit_decoder(4, 2, 100)
    z = torch.rand(50, 4, generator=torch.Generator().manual_seed(0))
    for coarse in (z, z.half(), z.bfloat16()):
        assert torch.equal(decoder.encode(coarse), decoder.encode(coarse.double()))
        assert (decoder.decode(decoder.encode(coarse)) - coarse).abs().max() <= decoder.tolerance + 2**-50


def test_it_is_one_hidden_layer_between_two_linear_maps():
    decoder = decoding.digit_decoder(3, 1, 5)
    state = torch.linspace(0, 1, 301, dtype=torch.float64)[:, None]
    hidden = (state[..., None] - decoder.knots).relu()
    drawn = (hidden @ decoder.slopes + decoder.offset).flatten(-2)
    torch.testing.assert_close(decoder.decode(state), drawn, rtol=0, atol=1e-10)


def test_it_can_be_built_on_any_device():
    decoder = decoding.digit_decoder(4, 2, 5, device="meta")
    z = torch.empty(3, 4, device="meta")
    assert decoder.decode(decoder.encode(z)).shape == (3, 4)
    assert decoder.parameters == decoding.digit_decoder(4, 2, 5).parameters


@pytest.mark.parametrize(("n_numbers", "n_state"), [(1, 1), (2, 1), (3, 1), (2, 2), (4, 2), (6, 2)])
def test_its_size_follows_the_law(n_numbers, n_state):
    sizes = [decoding.digit_decoder(n_numbers, n_state, levels).parameters for levels in (16, 64)]
    assert math.log(sizes[1] / sizes[0], 4) == pytest.approx(n_numbers / n_state, abs=0.02)


def test_its_size_counts_what_it_holds():
    decoder = decoding.digit_decoder(4, 2, 5)
    assert decoder.parameters == 2 * (2 * 25 + 25 * 2 + 2)


@pytest.mark.parametrize(("n_numbers", "n_state", "levels"), [(2, 1, 8), (3, 1, 5), (4, 2, 8)])
def test_no_decoder_of_ours_amplifies_less_than_the_bound(n_numbers, n_state, levels):
    decoder = decoding.digit_decoder(n_numbers, n_state, levels)
    steepest = decoder.slopes.cumsum(0).abs().max()  # the Lipschitz constant of a piecewise linear function
    assert decoding.amplification_bound(n_numbers, n_state, decoder.tolerance) <= steepest


def test_the_bound_grows_as_stated():
    bounds = [decoding.amplification_bound(4, 2, tolerance) for tolerance in (1e-3, 1e-4)]
    assert math.log10(bounds[1] / bounds[0]) == pytest.approx(1.0, abs=0.02)  # m/n - 1 = 1
    assert decoding.amplification_bound(2, 2, 1e-4) <= 1  # as many numbers as places: the identity will do
    assert decoding.amplification_bound(3, 1, 0.1, state_range=2) == decoding.amplification_bound(3, 1, 0.1) / 2


def by_trying_all(n_numbers, n_state, tolerance):
    finest = math.ceil(1 / (2 * tolerance)) - 1
    j = torch.arange(1, finest + 1, dtype=torch.float64)
    return ((1 / j - 2 * tolerance) * ((j + 1) ** (n_numbers / n_state) - 1)).max().item()


@given(st.integers(1, 40), st.integers(1, 8), st.floats(1e-5, 0.49))
@settings(deadline=None, max_examples=200)
def test_the_bound_is_the_largest_over_all_grids(n_numbers, n_state, tolerance):
    expected = by_trying_all(n_numbers, n_state, tolerance)
    assert decoding.amplification_bound(n_numbers, n_state, tolerance) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("tolerance", [1e-10, 1e-30, 1e-300, sys.float_info.min])
def test_a_fine_tolerance_costs_no_memory(tolerance):
    # The best grid has spacing 4 eps, so 1/(8 eps) up to terms that vanish with eps.
    assert decoding.amplification_bound(2, 1, tolerance) == pytest.approx(1 / (8 * tolerance), rel=1e-9)
    assert decoding.amplification_bound(2, 2, tolerance) == pytest.approx(1)
    steep = decoding.amplification_bound(5, 1, tolerance)
    assert steep <= sys.float_info.max
    assert decoding.amplification_bound(5, 1, tolerance, state_range=1e-300) == sys.float_info.max
    assert decoding.amplification_bound(5, 1, tolerance, state_range=1e300) == steep / 1e300


@given(st.integers(1, 2**62), st.integers(1, 2**62), st.floats(sys.float_info.min, 1e308))
@settings(deadline=None)
def test_any_sizes_give_a_number(n_numbers, n_state, tolerance):
    bound = decoding.amplification_bound(n_numbers, n_state, tolerance)
    assert 0 <= bound <= sys.float_info.max
    assert (bound > 0) == (tolerance < 0.5)


def test_a_tolerance_of_one_half_needs_no_decoder():
    assert decoding.amplification_bound(3, 1, 0.5) == 0
    assert decoding.amplification_bound(3, 1, 0.49) > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: decoding.digit_decoder(3, 2, 4),
            r"n_state=2 does not divide n_numbers=3; nearest n_numbers: \[2, 4\]",
        ),
        (lambda: decoding.digit_decoder(2, 1, 1), "levels=1 with 2 numbers a coordinate .* nearest levels: 2$"),
        (lambda: decoding.digit_decoder(3, 1, 101), "levels=101 with 3 numbers .* nearest levels: 100$"),
        (lambda: decoding.digit_decoder(8, 1, 10), "levels=10 with 8 numbers .* nearest levels: 5$"),
        (lambda: decoding.digit_decoder(20, 1, 2), "20 numbers a coordinate .* even 2 need a larger n_state"),
        (lambda: decoding.digit_decoder(10**18, 1, 2), "numbers a coordinate"),
        (lambda: decoding.digit_decoder(2, 1, 2.5), "levels=2.5 must be a positive integer"),
        (lambda: decoding.digit_decoder(2, 1, 4).encode(torch.tensor([0.5, 1.5])), r"z must lie in \[0, 1\]; nearest"),
        (lambda: decoding.digit_decoder(2, 1, 4).encode(torch.tensor([0.5, math.nan])), "z must lie in"),
        (lambda: decoding.digit_decoder(2, 1, 4).encode(torch.zeros(3)), r"z has shape \[3\]; expected .* m=2"),
        (lambda: decoding.digit_decoder(2, 1, 4).decode(torch.zeros(2)), r"state has shape \[2\]; expected .* n=1"),
        (lambda: decoding.amplification_bound(0, 1, 0.1), "n_numbers"),
        (lambda: decoding.amplification_bound(1, 1, 0), "tolerance=0"),
        (lambda: decoding.amplification_bound(1, 1, math.inf), "tolerance=inf"),
        (lambda: decoding.amplification_bound(1, 1, 1e-310), "tolerance=1e-310 .*; nearest: 2.2250738585072014e-308"),
        (lambda: decoding.amplification_bound(1, True, 0.1), "n_state=True"),
        (lambda: decoding.amplification_bound(1, 1, 0.1, state_range=-1), "state_range=-1"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
