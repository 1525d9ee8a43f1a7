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

from manyheads.models.checks import at_least_zero, positive_int


def centred_log(weights: Tensor) -> Tensor:
    """Return log weights with the mean of every row taken off, shape [..., T, T] (nats).

    Raises
    ------
    ValueError
        When ``weights`` is not square or not floating, or a weight is not finite and positive (an exact zero needs an
        infinite score).
    """
    if weights.ndim < 2 or weights.shape[-1] != weights.shape[-2]:
        raise ValueError(f"weights has shape {tuple(weights.shape)}; expected [..., T, T]")
    if not weights.is_floating_point():
        raise ValueError(f"weights has type {weights.dtype}; nearest: weights.double()")
    if not weights.is_meta and not bool(((weights > 0) & weights.isfinite()).all()):
        raise ValueError("weights must all be positive and finite: a weight of exactly 0 needs an infinite score")
    logs = weights.log()
    return logs - logs.mean(-1, keepdim=True)


def required_d_head(weights: Tensor, relative_tolerance: float | None = None) -> Tensor:
    r"""Smallest head dimension D whose scores can produce ``weights`` exactly (0 for uniform attention).

    Parameters
    ----------
    weights
        Attention pattern, shape [..., T, T], positive, rows summing to 1. The coarser its type, the fewer dimensions
        can be told from rounding.
    relative_tolerance
        Singular values below this share of the largest (or of 1, if that is more) count as zero. Left out, it is
        1e-9, and what the rounding of the weights can do counts as zero too: up to :math:`T \epsilon \max(1, l)`,
        with :math:`\epsilon` the spacing next to 1 of numbers of their type, and l the largest centred log weight.

    Returns
    -------
    Tensor
        Integers of shape [...].

    Raises
    ------
    ValueError
        For weights as in :func:`centred_log`, or a negative ``relative_tolerance``.
    """
    logs = centred_log(weights.double() if weights.is_floating_point() else weights)
    singular = torch.linalg.svdvals(logs)
    scale = singular[..., :1].clamp_min(1.0)
    if relative_tolerance is not None:
        floor = at_least_zero("relative_tolerance", relative_tolerance) * scale
    else:
        rounding = logs.shape[-1] * torch.finfo(weights.dtype).eps * logs.abs().amax((-2, -1)).clamp_min(1.0)
        floor = torch.maximum(1e-9 * scale, rounding[..., None])
    return (singular > floor).sum(-1)


def queries_and_keys(weights: Tensor, d_head: int) -> tuple[Tensor, Tensor]:
    r"""Queries and keys, each [..., T, D], whose scores :math:`QK^\top/\sqrt D` best fit the centred log weights.

    Best in the sum of squares (Eckart and Young), and exact once D reaches :func:`required_d_head`.

    Raises
    ------
    ValueError
        For weights as in :func:`centred_log`, or when ``d_head`` is not an integer between 1 and T.
    """
    logs = centred_log(weights)
    d_head, n_tokens = positive_int("d_head", d_head), logs.shape[-1]
    if d_head > n_tokens:
        raise ValueError(f"d_head={d_head} must lie between 1 and T={n_tokens}; nearest: {n_tokens}")
    # There is no SVD in 16 bits.
    left, singular, right = torch.linalg.svd(logs.to(torch.promote_types(logs.dtype, torch.float32)))
    root = (singular[..., :d_head] * d_head**0.5).sqrt()
    queries, keys = left[..., :d_head] * root[..., None, :], right[..., :d_head, :].mT * root[..., None, :]
    return queries.to(logs.dtype), keys.to(logs.dtype)


def divergence(target: Tensor, weights: Tensor) -> Tensor:
    r"""Mean over rows of the Kullback-Leibler divergence :math:`\sum_s P_{ts} \log(P_{ts}/Q_{ts})`, nats, shape [...].

    A weight that underflowed to 0 counts as the smallest normal number of its type, so the value stays finite.
    """
    logs = [part.clamp_min(torch.finfo(part.dtype).tiny).log() for part in (target, weights)]
    return (target * (logs[0] - logs[1])).sum(-1).mean(-1)
