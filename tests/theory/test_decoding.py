import math

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
    assert error <= decoder.tolerance + 1e-9
    assert error > 0.8 * decoder.tolerance


def test_every_code_word_is_decoded_exactly():
    decoder = decoding.digit_decoder(2, 1, 7)
    middle = (torch.arange(7).double() + 0.5) / 7
    z = torch.cartesian_prod(middle, middle)
    assert torch.allclose(decoder.decode(decoder.encode(z)), z, atol=1e-10)


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
        (lambda: decoding.digit_decoder(2, 1, 1), "levels=1"),
        (lambda: decoding.digit_decoder(8, 1, 10), "levels=10 with 8 numbers"),
        (lambda: decoding.amplification_bound(0, 1, 0.1), "n_numbers"),
        (lambda: decoding.amplification_bound(1, 1, 0), "tolerance=0"),
        (lambda: decoding.amplification_bound(1, 1, 0.1, state_range=-1), "state_range=-1"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
