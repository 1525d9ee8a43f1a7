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
import sys
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor
from torch.types import Device

from manyheads.models.checks import above_zero, positive_int

MOST_KNOTS = 10**6
LARGEST = sys.float_info.max


def amplification_bound(n_numbers: int, n_state: int, tolerance: float, state_range: float = 1.0) -> float:
    r"""Smallest Lipschitz constant (sup norm) of any decoder, whatever the encoder.

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
        The bound above, maximised over j, but never more than the largest float; 0 when the tolerance is at least one
        half, since a constant will then do.

    Raises
    ------
    ValueError
        For a number of numbers that is not a positive integer, a ``tolerance`` below 2.2e-308 (where floats lose
        digits), or a ``state_range`` that is not finite and above 0.

    Notes
    -----
    With p = m/n, the derivative of the logarithm of the bound in j has the sign of

    .. math:: \frac{(1 + j)^{1-p} - 1 + (p-1) j}{j^2} - 2 \varepsilon p .

    The fraction is the remainder of a Taylor series, an average of the second derivative of :math:`(1+y)^{1-p}` over
    [0, j]. For p > 1 that derivative falls with y, so the bound first rises and then falls; for p at most 1 the
    fraction is not positive, and the bound falls from j = 1 on. Either way halving an interval finds the best j.
    """
    n_numbers, n_state = positive_int("n_numbers", n_numbers), positive_int("n_state", n_state)
    tolerance, state_range = above_zero("tolerance", tolerance), above_zero("state_range", state_range)
    if tolerance < sys.float_info.min:
        raise ValueError(f"tolerance={tolerance} is finer than floats can tell; nearest: {sys.float_info.min}")
    power, width = n_numbers / n_state, 2 * Fraction(tolerance)

    def rises(j: int) -> bool:
        return (math.expm1((1 - power) * math.log1p(j)) / j + power - 1) / j > 2 * tolerance * power

    def bound(j: int) -> float:
        apart = Fraction(1, j) - width  # exactly, since it may be small against both
        log_count = power * math.log1p(j)  # of the grid's points, over n; may be too large for its exponential
        log_bound = math.log(apart.numerator) - math.log(apart.denominator)
        log_bound += log_count + math.log(-math.expm1(-log_count))
        return math.exp(min(log_bound, math.log(LARGEST)))

    low, high = 1, math.ceil(1 / width) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return min(max(bound(low), bound(high)) / state_range, LARGEST) if high else 0.0


@dataclass(frozen=True)
class Decoder:
    """A hidden ReLU layer a coordinate: ``knots`` [b^(m/n)], ``slopes`` [knots, m/n], ``offset`` [m/n], all shared.

    A state is a whole number times a power of two, and so are the knots. Slopes are kept in levels per state: whole
    numbers over that power of two. All sums of :meth:`decode` are therefore exact, however many the knots.
    """

    n_numbers: int
    n_state: int
    levels: int
    spacing: float
    """Distance of neighbouring states: the largest power of two with which all b^(m/n) fit into [0, 1)."""
    changes: Tensor
    """Change of slope at every knot, in levels: whole numbers ``[knots, m/n]``."""

    @property
    def knots(self) -> Tensor:
        """Where slopes change, one knot a state: ``[b^(m/n)]``."""
        return self.spacing * torch.arange(len(self.changes), dtype=torch.float64, device=self.changes.device)

    @property
    def slopes(self) -> Tensor:
        """Change of slope at every knot, ``[b^(m/n), m/n]``."""
        return self.changes / (self.levels * self.spacing)

    @property
    def offset(self) -> Tensor:
        """What the state 0 stands for: the middle of the lowest level, ``[m/n]``."""
        return torch.full_like(self.changes[0], 1 / (2 * self.levels))

    @property
    def tolerance(self) -> float:
        """Largest error, half a level; up to the rounding of the answer itself, 2^-52."""
        return 1 / (2 * self.levels)

    @property
    def parameters(self) -> int:
        """Numbers in the network: input weight and bias of every hidden unit, output weights, output biases."""
        n_knots, per_coordinate = self.changes.shape
        return self.n_state * (2 * n_knots + n_knots * per_coordinate + per_coordinate)

    def encode(self, z: Tensor) -> Tensor:
        """Round numbers z [..., m] in [0, 1] to levels and pack them as digits into a float64 state [..., n] in [0, 1).

        Raises
        ------
        ValueError
            For a wrong number of numbers, or one outside [0, 1].
        """
        if z.ndim == 0 or z.shape[-1] != self.n_numbers:
            raise ValueError(f"z has shape {list(z.shape)}; expected [..., m={self.n_numbers}]")
        if not z.is_meta and not bool(((z >= 0) & (z <= 1)).all()):
            raise ValueError("z must lie in [0, 1]; nearest: z.clamp(0, 1)")
        digits = (z.double() * self.levels).floor().clamp(max=self.levels - 1).unflatten(-1, (self.n_state, -1))
        return (digits * _places(self.levels, digits.shape[-1], z.device)).sum(-1) * self.spacing

    def decode(self, state: Tensor) -> Tensor:
        """Give back the numbers, [..., n] to [..., m]: ``offset + slopes . relu(state - knots)`` per coordinate.

        Raises
        ------
        ValueError
            For a wrong number of numbers.
        """
        if state.ndim == 0 or state.shape[-1] != self.n_state:
            raise ValueError(f"state has shape {list(state.shape)}; expected [..., n={self.n_state}]")
        hidden = (state[..., None] - self.knots).relu() / self.spacing
        return ((hidden @ self.changes + 0.5) / self.levels).flatten(-2)


def digit_decoder(n_numbers: int, n_state: int, levels: int, device: Device = None) -> Decoder:
    """Build the decoder of the size statement, in float64.

    Raises
    ------
    ValueError
        When ``n_state`` does not divide ``n_numbers``, there are fewer than 2 levels, or more than a million knots.
    """
    n_numbers, n_state = positive_int("n_numbers", n_numbers), positive_int("n_state", n_state)
    levels = positive_int("levels", levels)
    if n_numbers % n_state:
        below = n_numbers - n_numbers % n_state
        choices = [n for n in (below, below + n_state) if n]
        raise ValueError(f"n_state={n_state} does not divide n_numbers={n_numbers}; nearest n_numbers: {choices}")
    per_coordinate = n_numbers // n_state
    most = math.floor(MOST_KNOTS ** (1 / per_coordinate) + 1e-9)
    if not 2 <= levels <= most:
        nearest = f"nearest levels: {min(max(levels, 2), most)}" if most > 1 else "even 2 need a larger n_state"
        raise ValueError(
            f"levels={levels} with {per_coordinate} numbers a coordinate must give from 2 to {MOST_KNOTS:,} knots; "
            f"{nearest}"
        )
    index = torch.arange(levels**per_coordinate, device=device)
    digits = ((index[:, None] // _places(levels, per_coordinate, device)) % levels).double()  # of each state [L, m/n]
    # The interpolant through (state, digits + 1/2): a unit at every knot adds the change of slope there.
    slopes = torch.diff(digits, dim=0, append=digits[-1:])
    changes = torch.diff(slopes, dim=0, prepend=torch.zeros_like(slopes[:1]))
    return Decoder(n_numbers, n_state, levels, 2.0 ** -(len(index) - 1).bit_length(), changes)


def _places(levels: int, n_digits: int, device: Device) -> Tensor:
    """What a digit counts for, most significant first."""
    return levels ** torch.arange(n_digits - 1, -1, -1, device=device)
