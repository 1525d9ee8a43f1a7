"""Retrieval tasks: the target is one of the tokens, or made of a few of them."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def kth_largest(generator: Generator, batch_size: int, n_tokens: int, k: int) -> tuple[Tensor, Tensor]:
    """Draw uniform tokens and ask for the k-th largest.

    Parameters
    ----------
    generator
        A CPU generator; :func:`manyheads.models.seeds.generator` makes one from a name.
    batch_size, n_tokens
        Sizes B and T.
    k
        1 for the maximum, T for the minimum.

    Returns
    -------
    (Tensor, Tensor)
        Tokens [B, T, 1], uniform in [0, 1], and targets [B, 1], float32 on the CPU.

    Raises
    ------
    ValueError
        When ``k`` is not between 1 and ``n_tokens``.
    """
    _check_rank(k, n_tokens)
    x = torch.rand(batch_size, n_tokens, generator=generator)
    return x[..., None], x.sort(-1, descending=True).values[:, k - 1 : k]


def kth_largest_variance(n_tokens: int, k: int) -> float:
    """Variance of the k-th largest of T uniform numbers, a Beta(T + 1 - k, k) variable: k (T+1-k) / ((T+1)^2 (T+2)).

    Dividing a mean squared error by it gives the NMSE: 0 is perfect, 1 is what a constant reaches.

    Raises
    ------
    ValueError
        When ``k`` is not between 1 and ``n_tokens``.
    """
    _check_rank(k, n_tokens)
    return k * (n_tokens + 1 - k) / ((n_tokens + 1) ** 2 * (n_tokens + 2))


def _check_rank(k: int, n_tokens: int) -> None:
    if not 1 <= k <= n_tokens:
        raise ValueError(f"k={k} must lie between 1 and n_tokens={n_tokens}; nearest: {min(max(k, 1), n_tokens)}")
