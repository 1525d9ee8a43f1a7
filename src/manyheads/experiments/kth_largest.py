"""Chapter 2: one trained layer on the k-th largest of T numbers.

The model is a one-layer :class:`~manyheads.models.Encoder` with one head and a nonlinear embedding of each token. The
head hands n numbers over (its head and value dimension); width and feed-forward network stay the same, so n is all
that changes. Every (T, k, n) is an ensemble: all its seeds train in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Generator, Tensor

from manyheads.experiments import recipe
from manyheads.models import Encoder, EncoderSpec, seeds
from manyheads.tasks import retrieval
from manyheads.training import Result


@dataclass(frozen=True, kw_only=True)
class Config(recipe.Config):
    """What to train.

    Attributes
    ----------
    n_tokens, ks, d_heads
        Lengths T, ranks k (1 is the maximum) and numbers n that the head hands over.
    d_model, d_ff
        Width E, and hidden width of the feed-forward network and the embedding.
    """

    PROFILES: ClassVar = {
        "gpu": {"n_tokens": (4, 16), "ks": (1, 2, 3, 4), "d_heads": (1, 8), "n_seeds": 6, "n_steps": 3000},
        "full": {"n_tokens": (4, 8, 16, 32), "ks": (1, 2, 3, 4), "d_heads": (1, 2, 8), "n_seeds": 6, "n_steps": 3000},
    }
    AXES: ClassVar = {"n_tokens": "n_tokens", "k": "ks", "d_head": "d_heads"}

    n_tokens: tuple[int, ...] = (4,)
    ks: tuple[int, ...] = (1, 2)
    d_heads: tuple[int, ...] = (4,)
    d_model: int = 16
    d_ff: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if max(self.ks) > min(self.n_tokens):
            raise ValueError(f"ks={self.ks} asks for more than n_tokens={self.n_tokens} holds")


def spec(config: Config, d_head: int) -> EncoderSpec:
    """Describe the one-layer model whose head hands ``d_head`` numbers over."""
    return EncoderSpec(
        d_in=1, d_out=1, d_model=config.d_model, heads=(1,), d_head=d_head, d_ff=config.d_ff, embedding="mlp"
    )


def train(config: Config, n_tokens: int, k: int, d_head: int, stop_after: int | None = None) -> list[Result]:
    """Train all seeds of one point in one pass."""

    def make_model(seed: int) -> Encoder:
        return seeds.initialise(Encoder(spec(config, d_head)), seed)

    def batch(generator: Generator, n: int) -> tuple[Tensor, Tensor]:
        return retrieval.kth_largest(generator, n, n_tokens, k)

    return recipe.train_seeds(config, make_model, batch, recipe.mean_square, stop_after=stop_after)


def measure(config: Config, n_tokens: int, k: int, d_head: int) -> dict[str, list[float]]:
    """``nmse``: held-out error of every seed, 0 perfect, 1 a constant."""
    variance = retrieval.kth_largest_variance(n_tokens, k)
    return {"nmse": [trained.final / variance for trained in train(config, n_tokens, k, d_head)]}


def replay(config: Config, recorded: Mapping[str, Any] | None = None) -> dict[str, list[float]]:
    """``loss``: of the first steps at the first point, averaged over seeds."""
    first = config.n_tokens[0], config.ks[0], config.d_heads[0]
    return {"loss": recipe.first_losses(train(config, *first, stop_after=recipe.REPLAYED_STEPS))}
