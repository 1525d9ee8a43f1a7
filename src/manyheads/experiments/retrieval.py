"""Chapter 2: one trained layer on the k-th largest of T numbers.

The model is a one-layer :class:`~manyheads.models.Encoder` with one head and a nonlinear embedding of each token. The
head hands n numbers over (its head and value dimension); width and feed-forward network stay the same, so n is all
that changes. Every (T, k, n) is an ensemble: all its seeds train in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyheads.experiments import common
from manyheads.models import EncoderSpec
from manyheads.tasks import retrieval
from manyheads.training import Result as Trained

_PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"n_tokens": (4,), "ks": (1, 2), "d_heads": (4,), "n_seeds": 3, "n_steps": 300},
    "gpu": {"n_tokens": (4, 8), "ks": (1, 2, 3, 4), "d_heads": (1, 4), "n_seeds": 8, "n_steps": 3000},
    "full": {"n_tokens": (4, 8, 16), "ks": (1, 2, 3, 4), "d_heads": (1, 2, 4, 8), "n_seeds": 8, "n_steps": 3000},
}


@dataclass(frozen=True)
class Config:
    """What to train. Fields left out come from the profile.

    Attributes
    ----------
    profile
        ``quick`` (seconds on a laptop), ``gpu`` (minutes) or ``full``.
    n_tokens, ks, d_heads
        Lengths T, ranks k (1 is the maximum) and numbers n that the head hands over.
    n_seeds, n_steps
        Seeds of every setting, and updates of each.
    d_model, d_ff, batch_size, learning_rate
        Width E, hidden width of the feed-forward network, samples a step, and AdamW's rate (5% warm-up, cosine to 0,
        gradient clipped to 1).
    eval_size
        Held-out samples, drawn once a seed.
    seed, device
        Base seed, and where to train.
    """

    profile: str = "quick"
    n_tokens: tuple[int, ...] | None = None
    ks: tuple[int, ...] | None = None
    d_heads: tuple[int, ...] | None = None
    n_seeds: int | None = None
    n_steps: int | None = None
    d_model: int = 16
    d_ff: int = 64
    batch_size: int = 128
    learning_rate: float = 1e-2
    eval_size: int = 4096
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        common.fill(self, _PRESETS)
        if max(self.ks) > min(self.n_tokens):
            raise ValueError(f"ks={self.ks} asks for more than n_tokens={self.n_tokens} holds")


@dataclass(frozen=True)
class Result:
    """Held-out errors. ``nmse`` has shape [len(n_tokens), len(ks), len(d_heads), n_seeds]: 0 perfect, 1 a constant."""

    n_tokens: tuple[int, ...]
    ks: tuple[int, ...]
    d_heads: tuple[int, ...]
    nmse: np.ndarray


def spec(config: Config, d_head: int) -> EncoderSpec:
    """Describe the one-layer model whose head hands ``d_head`` numbers over."""
    return EncoderSpec(
        d_in=1, d_out=1, d_model=config.d_model, heads=(1,), d_head=d_head, d_ff=config.d_ff, embedding="mlp"
    )


def train(config: Config, n_tokens: int, k: int, d_head: int, stop_after: int | None = None) -> list[Trained]:
    """Train all seeds of one setting in one pass."""

    def batch(generator, n):
        return retrieval.kth_largest(generator, n, n_tokens, k)

    return common.train_seeds(config, spec(config, d_head), batch, stop_after=stop_after)


def shards(config: Config) -> list[tuple[int, int, int]]:
    """Independent parts of the work: one a (T, k, n)."""
    return [(t, k, n) for t in config.n_tokens for k in config.ks for n in config.d_heads]


def run_shard(config: Config, shard: tuple[int, int, int]) -> list[float]:
    """NMSE of every seed of one (T, k, n)."""
    n_tokens, k, d_head = shard
    variance = retrieval.kth_largest_variance(n_tokens, k)
    return [trained.final / variance for trained in train(config, n_tokens, k, d_head)]


def combine(config: Config, parts: list[list[float]]) -> Result:
    """Put the shards, in the order of :func:`shards`, into one result."""
    shape = (len(config.n_tokens), len(config.ks), len(config.d_heads), config.n_seeds)
    return Result(config.n_tokens, config.ks, config.d_heads, np.array(parts).reshape(shape))


def run(config: Config) -> Result:
    """Train every setting of ``config``."""
    return combine(config, [run_shard(config, shard) for shard in shards(config)])


def first_losses(config: Config, n_steps: int) -> list[float]:
    """Training losses of the first steps at the first setting, averaged over seeds."""
    trained = train(config, *shards(config)[0], stop_after=n_steps)
    return np.mean([member.losses for member in trained], axis=0).tolist()


RECORDINGS = {"retrieval": Config(profile="full")}
