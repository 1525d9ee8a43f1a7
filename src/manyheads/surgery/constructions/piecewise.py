r"""Piecewise linear functions, which is what one hidden ReLU layer computes.

.. math:: f(z) = f_0 + \sum_j c_j \, \mathrm{relu}(z - k_j)

has a knot :math:`k_j` per hidden unit, at which its slope changes by :math:`c_j`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.types import Device

from manyheads.models.checks import above_zero, at_least_zero, positive_int


@dataclass(frozen=True)
class PiecewiseLinear:
    """``offset`` left of the first knot, then a change of slope ``changes`` [n] at every one of ``knots`` [n]."""

    knots: Tensor
    changes: Tensor
    offset: float

    def __call__(self, z: Tensor) -> Tensor:
        """Evaluate at ``z`` of any shape."""
        return self.offset + (z[..., None] - self.knots).relu() @ self.changes


def square(radius: float, n_segments: int, device: Device = None) -> PiecewiseLinear:
    r"""Interpolate :math:`z^2` at the ends of ``n_segments`` equal segments of [-radius, radius].

    One hidden unit a segment. With :math:`h = 2\,radius/n`, the interpolant lies above the square by at most
    :math:`h^2/4`, attained in the middle of every segment, and touches it at the knots.

    Raises
    ------
    ValueError
        For a ``radius`` that is not above 0 or has no square among floats, or ``n_segments`` below 1.
    """
    radius, n_segments = above_zero("radius", radius), positive_int("n_segments", n_segments)
    if radius * radius == math.inf:
        raise ValueError(f"radius={radius} has no square among floats; nearest: 1e+154")
    h = 2 * radius / n_segments
    knots = torch.arange(n_segments, dtype=torch.float64, device=device) * h - radius
    changes = torch.full_like(knots, 2 * h)
    changes[0] = h - 2 * radius  # the slope of the first segment
    return PiecewiseLinear(knots, changes, radius**2)


def ramp(height: float, length: float, device: Device = None) -> PiecewiseLinear:
    """``height`` up to z = 0, 0 from z = ``length`` on, and a straight line between: slope -height/length.

    Raises
    ------
    ValueError
        For a ``height`` below 0, a ``length`` not above 0, or a slope that no float can hold.
    """
    height, length = at_least_zero("height", height), above_zero("length", length)
    slope = height / length
    if slope == math.inf:
        raise ValueError(f"height={height} over length={length} is steeper than any float; nearest length: 1e-300")
    knots = torch.tensor([0.0, length], dtype=torch.float64, device=device)
    changes = torch.tensor([-slope, slope], dtype=torch.float64, device=device)
    return PiecewiseLinear(knots, changes, height)
