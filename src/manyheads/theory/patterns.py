r"""Which attention patterns a head of dimension D can produce exactly.

Without positions a head's scores are :math:`S = Q K^\top / \sqrt D`, a matrix of rank at most D. Softmax forgets what
is added to a whole row. So a pattern :math:`P` with positive entries is in reach exactly when some
:math:`\log P + r 1^\top` has rank at most D, and the best :math:`r` centres every row:

.. math:: D_{\min}(P) = \operatorname{rank}\big(\log P \,(I - \tfrac1T 1 1^\top)\big) \le T - 1 .

The argument is that of the softmax bottleneck (Yang et al. 2018, arXiv 1711.03953), applied to attention. The
bottleneck in attention was found by Bhojanapalli et al. 2020 (arXiv 2002.07028); the count for a given pattern is ours.
"""

from __future__ import annotations

import torch
from torch import Tensor


def centred_log(weights: Tensor) -> Tensor:
    """Return log weights with the mean of every row taken off, shape [..., T, T] (nats).

    Raises
    ------
    ValueError
        When ``weights`` is not square, or a weight is not positive (an exact zero needs an infinite score).
    """
    if weights.ndim < 2 or weights.shape[-1] != weights.shape[-2]:
        raise ValueError(f"weights has shape {tuple(weights.shape)}; expected [..., T, T]")
    if not weights.is_meta and not bool((weights > 0).all()):
        raise ValueError("weights must all be positive: a weight of exactly 0 needs an infinite score")
    logs = weights.log()
    return logs - logs.mean(-1, keepdim=True)


def required_d_head(weights: Tensor, relative_tolerance: float = 1e-9) -> Tensor:
    """Smallest head dimension D whose scores can produce ``weights`` exactly (0 for uniform attention).

    Parameters
    ----------
    weights
        Attention pattern, shape [..., T, T], positive, rows summing to 1; use float64.
    relative_tolerance
        Singular values below this share of the largest count as zero.

    Returns
    -------
    Tensor
        Integers of shape [...].
    """
    singular = torch.linalg.svdvals(centred_log(weights))
    floor = relative_tolerance * singular[..., :1].clamp_min(1.0)
    return (singular > floor).sum(-1)


def queries_and_keys(weights: Tensor, d_head: int) -> tuple[Tensor, Tensor]:
    r"""Queries and keys, each [..., T, D], whose scores :math:`QK^\top/\sqrt D` best fit the centred log weights.

    Best in the sum of squares (Eckart and Young), and exact once D reaches :func:`required_d_head`.

    Raises
    ------
    ValueError
        When ``d_head`` is not between 1 and T.
    """
    n_tokens = weights.shape[-1]
    if not 1 <= d_head <= n_tokens:
        raise ValueError(f"d_head={d_head} must lie between 1 and T={n_tokens}")
    left, singular, right = torch.linalg.svd(centred_log(weights))
    root = (singular[..., :d_head] * d_head**0.5).sqrt()
    return left[..., :d_head] * root[..., None, :], right[..., :d_head, :].mT * root[..., None, :]


def divergence(target: Tensor, weights: Tensor) -> Tensor:
    r"""Mean over rows of the Kullback-Leibler divergence :math:`\sum_s P_{ts} \log(P_{ts}/Q_{ts})`, nats, shape [...].

    A weight that underflowed to 0 counts as the smallest positive number of its type, so the value stays finite.
    """
    tiny = torch.finfo(weights.dtype).tiny
    return (target * (target.clamp_min(tiny).log() - weights.clamp_min(tiny).log())).sum(-1).mean(-1)
