import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyheads.surgery.piecewise import ramp, square


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


def test_bad_segments_are_refused():
    with pytest.raises(ValueError, match="n_segments=0"):
        square(1.0, 0)
