"""Chapter 3: one wide layer against two narrow ones on the most opposite pair, max over s, t of -x(s)' x(t).

Tokens are uniform in [-1, 1]^d and A = -I. (For a symmetric positive semidefinite A the best pair is a token with
itself, and one layer is enough.) The small network has two layers of one head; the others have one layer, several heads
and up to more than twice its parameters. All seeds of a network train in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from manyheads.experiments import recipe
from manyheads.models import Encoder, EncoderSpec, seeds
from manyheads.names import unknown
from manyheads.tasks import pairs
from manyheads.theory import costs
from manyheads.training import Result

NETWORKS = {
    "two layers, E = 16, H = 1": (2, 16, 1),
    "one layer, E = 16, H = 2": (1, 16, 2),
    "one layer, E = 16, H = 16": (1, 16, 16),
    "one layer, E = 32, H = 4": (1, 32, 4),
    "one layer, E = 32, H = 16": (1, 32, 16),
}
"""The networks that are compared: layers, width E and heads H by name, the small one with two layers first."""
DEEP, *SHALLOW = NETWORKS


@dataclass(frozen=True, kw_only=True)
class Config(recipe.Config):
    """What to train.

    Attributes
    ----------
    n_tokens, networks
        Lengths T, and names from ``NETWORKS``.
    d_in
        Token dimension d.
    """

    PROFILES: ClassVar = {
        "gpu": {"n_tokens": (4, 16), "networks": tuple(NETWORKS), "n_seeds": 5, "n_steps": 3000},
        "full": {"n_tokens": (4, 8, 16, 32), "networks": tuple(NETWORKS), "n_seeds": 5, "n_steps": 3000},
    }
    AXES: ClassVar = {"n_tokens": "n_tokens", "network": "networks"}

    n_tokens: tuple[int, ...] = (4,)
    networks: tuple[str, ...] = tuple(NETWORKS)[:2]
    n_seeds: int = 2
    d_in: int = 4
    learning_rate: float = 5e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        for network in self.networks:
            if network not in NETWORKS:
                raise ValueError(unknown("network", network, NETWORKS))


def matrix(d_in: int) -> Tensor:
    """Return A = -I [d, d]: the best pair is the most opposite one."""
    return -torch.eye(d_in)


def spec(config: Config, network: str) -> EncoderSpec:
    """Describe a network by its name."""
    n_layers, width, n_heads = NETWORKS[network]
    heads = (n_heads,) * n_layers
    return EncoderSpec(d_in=config.d_in, d_out=1, d_model=width, heads=heads, d_ff=4 * width, embedding="mlp")


def parameters(config: Config, network: str) -> int:
    """Count the learned numbers of a network."""
    return costs.encoder_parameters(spec(config, network))


def train(config: Config, n_tokens: int, network: str, stop_after: int | None = None) -> list[Result]:
    """Train all seeds of one network in one pass; the held-out value is the NMSE."""
    target = matrix(config.d_in)

    def make_model(seed: int) -> Encoder:
        return seeds.initialise(Encoder(spec(config, network)), seed)

    def batch(generator: Generator, n: int) -> tuple[Tensor, Tensor]:
        return pairs.draw(generator, n, n_tokens, target)

    return recipe.train_seeds(config, make_model, batch, recipe.mean_square, recipe.nmse, stop_after)


def measure(config: Config, n_tokens: int, network: str) -> dict[str, list[float]]:
    """``nmse``: held-out error of every seed, 0 perfect, 1 a constant; ``short``: that of a quarter of the steps.

    Both end with a learning rate of 0, so what the longer run gains shows how far training is from its end.
    """
    short = replace(config, n_steps=max(1, config.n_steps // 4))
    return {
        name: [trained.final for trained in train(settings, n_tokens, network)]
        for name, settings in (("nmse", config), ("short", short))
    }


def replay(config: Config, recorded: Mapping[str, Any] | None = None) -> dict[str, list[float]]:
    """``loss``: of the first steps of the first network at the first length, averaged over seeds."""
    trained = train(config, config.n_tokens[0], config.networks[0], stop_after=recipe.REPLAYED_STEPS)
    return {"loss": recipe.first_losses(trained)}
