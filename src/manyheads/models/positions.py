"""Where a token stands: rotations of queries and keys (rope) and penalties on distance (alibi)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.types import Device


def rotate(x: Tensor, rotary_dim: int, base: float = 10_000.0) -> Tensor:
    r"""Turn neighbouring pairs of dimensions by an angle proportional to the position.

    .. math:: (x_{2i}, x_{2i+1}) \mapsto R(t\,\theta_i)\,(x_{2i}, x_{2i+1}), \qquad
        \theta_i = \mathrm{base}^{-2i/r}, \quad i < r/2

    at position :math:`t = 0, \ldots, T-1`, with :math:`R` the rotation of the plane and r ``rotary_dim``. Dimensions
    from r on stay as they are. A query at t and a key at s, both turned, have an inner product that depends on t - s
    alone. Angles are computed in float32 or better, whatever the type of ``x``.

    Parameters
    ----------
    x
        ``[..., T, D]``, queries or keys.
    rotary_dim
        How many dimensions turn: even, at most D.
    base
        Sets the slowest rotation.

    References
    ----------
    Su et al. 2021, arXiv 2104.09864 (pairs are neighbours, as there, not halves).
    """
    n_tokens = x.shape[-2]
    exact: dict[str, Any] = {"device": x.device, "dtype": torch.promote_types(x.dtype, torch.float32)}
    frequency_r = base ** (-torch.arange(0, rotary_dim, 2, **exact) / rotary_dim)
    angle_tr = torch.arange(n_tokens, **exact)[:, None] * frequency_r
    cos, sin = angle_tr.cos(), angle_tr.sin()
    first, second = x[..., :rotary_dim].unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(-2)
    return torch.cat([turned.to(x.dtype), x[..., rotary_dim:]], dim=-1)


def alibi_slopes(n_heads: int, device: Device = None, dtype: torch.dtype | None = None) -> Tensor:
    r"""Slopes :math:`2^{-8(h+1)/H}` of heads h = 0, …, H - 1, as a tensor ``[H]``.

    References
    ----------
    Press et al. 2022, arXiv 2108.12409. Deviation: one geometric sequence for every H; the paper interpolates
    where H is not a power of two.
    """
    return 2.0 ** (-8.0 * torch.arange(1, n_heads + 1, device=device, dtype=dtype) / n_heads)


def alibi_bias(n_heads: int, n_tokens: int, device: Device = None, dtype: torch.dtype = torch.float32) -> Tensor:
    """What alibi adds to the scores: ``-slope[h] * |i - j|``, ``[H, T, T]``, on both sides of the diagonal."""
    exact: dict[str, Any] = {"device": device, "dtype": torch.promote_types(dtype, torch.float32)}
    position_t = torch.arange(n_tokens, **exact)
    distance_tt = (position_t[:, None] - position_t).abs()
    return (-alibi_slopes(n_heads, **exact)[:, None, None] * distance_tt).to(dtype)
