import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyheads.surgery.constructions.piecewise import ramp, square


@given(st.floats(0.1, 10), st.integers(1, 60))
def test_the_square_is_missed_by_a_quarter_of_h_squared_and_no_more(radius, n_segments):
    piece, h = square(radius, n_segments), 2 * radius / n_segments
    assert len(piece.knots) == n_segments
    z = torch.linspace(-radius, radius, 4 * n_segments + 1, dtype=torch.float64)
    excess = piece(z) - z**2
    assert excess.min() >= -1e-12 * radius**2
    assert float(excess.max()) == pytest.approx(h**2 / 4, rel=1e-9, abs=1e-12 * radius**2)
    assert torch.allclose(excess[::4], torch.zeros_like(excess[::4]), atol=1e-12 * radius**2)  # at the knots


@given(st.floats(0.1, 10), st.floats(0.001, 10))
def test_the_ramp(height, length):
    piece = ramp(height, length)
    z = torch.tensor([-1.0, 0.0, length / 2, length, length + 1], dtype=torch.float64)
    expected = torch.tensor([height, height, height / 2, 0, 0], dtype=torch.float64)
    assert torch.allclose(piece(z), expected, atol=1e-9 * height * (1 + 1 / length))


def test_numbers_of_numpy_and_other_types_of_tensor():
    piece = square(np.float32(2), np.int64(4), device="cpu")
    assert torch.equal(piece.knots, square(2.0, 4).knots)
    assert torch.equal(piece(torch.tensor([1.0])), torch.tensor([1.0], dtype=torch.float64))
    assert ramp(np.float32(1), np.float32(2)).offset == 1
    assert square(2.0, 4, device="meta")(torch.empty(3, device="meta")).is_meta


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: square(1.0, 0), "n_segments=0"),
        (lambda: square(0, 4), "radius=0"),
        (lambda: square(math.nan, 4), "radius=nan"),
        (lambda: square(True, 4), "radius=True"),
        (lambda: square(1e200, 4), "radius=1e[+]200 has no square among floats; nearest: 1e[+]154"),
        (lambda: ramp(1, 0), "length=0"),
        (lambda: ramp(1, -1), "length=-1"),
        (lambda: ramp(1, math.inf), "length=inf"),
        (lambda: ramp(math.inf, 1), "height=inf must be a finite number of at least 0"),
        (lambda: ramp(-1, 1), "height=-1 must be a finite number of at least 0"),
        (lambda: ramp(1, 1e-320), "height=1.0 over length=1e-320 is steeper than any float"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
