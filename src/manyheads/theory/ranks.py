"""When a singular value counts as zero."""

from __future__ import annotations

import torch
from torch import Tensor


def rank_tolerance(matrix: Tensor, least: float = 1e-9) -> float:
    """Share of the largest singular value of ``matrix`` [..., m, n] below which others count as zero.

    That is max(m, n) eps, with eps the spacing next to 1 of numbers of its type, as in ``numpy.linalg.matrix_rank``:
    about what rounding can do to a singular value. But never below ``least``, which in float64 decides.
    """
    return max(least, max(matrix.shape[-2:]) * torch.finfo(matrix.dtype).eps)
