r"""What it takes to decode many numbers from few: how much a decoder must amplify, and how large it gets.

An attention state of n numbers that must give back m numbers is a code. Two statements, both ours, behind the cost laws
of Yu, Jiang, Bao & Li 2026 (claims I4 and I5):

**Amplification.** Let :math:`a : [0,1]^m \to [0,B]^n` be any map and F a decoder with
:math:`\|F(a(z)) - z\|_\infty \le \varepsilon`. The :math:`(j+1)^m` points of a grid of spacing :math:`1/j` have states
at least :math:`(1/j - 2\varepsilon)/K` apart, K being F's Lipschitz constant in the sup norm, and a box has only so
much room, so for every whole :math:`j < 1/(2\varepsilon)`

.. math:: K \ge \frac{1/j - 2\varepsilon}{B} \Big( (j+1)^{m/n} - 1 \Big) \approx \varepsilon^{\,1 - m/n} / B .

**Size.** Numbers rounded to b levels, m/n of them packed as digits into each of the n coordinates, are decoded by one
hidden ReLU layer with a knot per level, :math:`b^{m/n}` knots a coordinate, to within :math:`\varepsilon = 1/(2b)`. So
:math:`O(\varepsilon^{-m/n})` parameters are enough, which is the law of claim I5 with m = :math:`|I|\,d` and n = E.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.models.checks import positive_int


def amplification_bound(n_numbers: int, n_state: int, tolerance: float, state_range: float = 1.0) -> float:
    """Smallest Lipschitz constant (sup norm) of any decoder, whatever the encoder.

    Parameters
    ----------
    n_numbers
        Numbers m in [0, 1] to give back.
    n_state
        Numbers n in the state.
    tolerance
        Largest error allowed in any of them, above 0.
    state_range
        Length B of an interval that holds each number of the state.

    Returns
    -------
    float
        The bound above, maximised over j; 0 when the tolerance is at least one half, since a constant will then do.
    """
    n_numbers, n_state = positive_int("n_numbers", n_numbers), positive_int("n_state", n_state)
    for name, value in (("tolerance", tolerance), ("state_range", state_range)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name}={value} must be a finite number above 0, for example 0.01")
    finest = math.ceil(1 / (2 * tolerance)) - 1
    j = torch.arange(1, finest + 1, dtype=torch.float64)
    bounds = (1 / j - 2 * tolerance) / state_range * ((j + 1) ** (n_numbers / n_state) - 1)
    return float(bounds.max()) if finest else 0.0


@dataclass(frozen=True)
class Decoder:
    """A hidden ReLU layer a coordinate: ``knots`` [b^(m/n)], ``slopes`` [knots, m/n], ``offset`` [m/n], all shared."""

    n_numbers: int
    n_state: int
    levels: int
    knots: Tensor
    slopes: Tensor
    offset: Tensor

    @property
    def tolerance(self) -> float:
        """Largest error, half a level."""
        return 1 / (2 * self.levels)

    @property
    def parameters(self) -> int:
        """Numbers in the network: input weight and bias of every hidden unit, output weights, output biases."""
        return self.n_state * (2 * len(self.knots) + self.slopes.numel() + self.offset.numel())

    def encode(self, z: Tensor) -> Tensor:
        """Round numbers z [..., m] in [0, 1] to levels and pack them as digits into a state [..., n] in [0, 1)."""
        digits = (z * self.levels).floor().clamp(0, self.levels - 1)
        digits = digits.unflatten(-1, (self.n_state, -1))
        places = self.levels ** -torch.arange(1, digits.shape[-1] + 1, dtype=z.dtype, device=z.device)
        return (digits * places).sum(-1)

    def decode(self, state: Tensor) -> Tensor:
        """Give back the numbers, [..., n] to [..., m]: ``offset + slopes . relu(state - knots)`` per coordinate."""
        hidden = (state[..., None] - self.knots).relu()
        return (hidden @ self.slopes + self.offset).flatten(-2)


def digit_decoder(n_numbers: int, n_state: int, levels: int) -> Decoder:
    """Build the decoder of the size statement, in float64.

    Raises
    ------
    ValueError
        When ``n_state`` does not divide ``n_numbers``, or there are fewer than 2 or more than a million levels in all.
    """
    n_numbers, n_state = positive_int("n_numbers", n_numbers), positive_int("n_state", n_state)
    if n_numbers % n_state:
        below = n_numbers - n_numbers % n_state
        choices = [n for n in (below, below + n_state) if n]
        raise ValueError(f"n_state={n_state} does not divide n_numbers={n_numbers}; nearest n_numbers: {choices}")
    per_coordinate = n_numbers // n_state
    if levels < 2 or levels**per_coordinate > 10**6:
        raise ValueError(f"levels={levels} with {per_coordinate} numbers a coordinate must give 2 to 10^6 knots")
    index = torch.arange(levels**per_coordinate)
    places = levels ** torch.arange(per_coordinate - 1, -1, -1)
    values = ((index[:, None] // places) % levels + 0.5).double() / levels  # what each state stands for [L, m/n]
    # The interpolant through (state, value): a unit at every knot adds the change of slope there.
    spacing = 1 / levels**per_coordinate
    slopes = torch.diff(values, dim=0, append=values[-1:]) / spacing
    changes = torch.diff(slopes, dim=0, prepend=torch.zeros_like(slopes[:1]))
    return Decoder(n_numbers, n_state, levels, index.double() * spacing, changes, values[0])
