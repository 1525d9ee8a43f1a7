"""The largest score of a pair: easy with two layers, hard with one."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def max_pair(x: Tensor, matrix: Tensor) -> Tensor:
    r"""Return :math:`\max_{s,t} x(s)^\top A\, x(t)`, s = t included.

    Tokens ``x`` [..., T, d] and ``matrix`` [d, d] give values [..., 1].
    """
    return (x @ matrix @ x.mT).flatten(-2).amax(-1, keepdim=True)


def draw(generator: Generator, batch_size: int, n_tokens: int, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Draw tokens uniform in [-1, 1]^d and their :func:`max_pair`: [B, T, d] and [B, 1], on the CPU, as ``matrix``."""
    x = 2 * torch.rand(batch_size, n_tokens, len(matrix), generator=generator, dtype=matrix.dtype) - 1
    return x, max_pair(x, matrix)
