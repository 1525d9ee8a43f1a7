"""Chapter 3: one wide layer against two narrow ones on the most opposite pair, max over s, t of -x(s)' x(t).

Tokens are uniform in [-1, 1]^d and A = -I. (For a symmetric positive semidefinite A the best pair is a token with
itself, and one layer is enough.) The small network has two layers of one head; the others have one layer, several heads
and several times its parameters. All seeds of a network train in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from manyheads.experiments import common
from manyheads.models import Encoder, EncoderSpec
from manyheads.names import unknown
from manyheads.tasks import pairs
from manyheads.training import Result as Trained

NETWORKS = {
    "two layers, E = 16": {"d_model": 16, "heads": (1, 1), "d_ff": 64},
    "one layer, E = 16": {"d_model": 16, "heads": (2,), "d_ff": 64},
    "one layer, E = 32": {"d_model": 32, "heads": (4,), "d_ff": 128},
    "one layer, E = 64": {"d_model": 64, "heads": (8,), "d_ff": 256},
}
"""The networks that are compared, by name: the first is the small one with two layers."""

_PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"n_tokens": (4,), "networks": tuple(NETWORKS)[:2], "n_seeds": 2, "n_steps": 300},
    "gpu": {"n_tokens": (4, 16), "networks": tuple(NETWORKS), "n_seeds": 6, "n_steps": 3000},
    "full": {"n_tokens": (4, 8, 16), "networks": tuple(NETWORKS), "n_seeds": 6, "n_steps": 3000},
}


@dataclass(frozen=True)
class Config:
    """What to train. Fields left out come from the profile.

    Attributes
    ----------
    profile
        ``quick`` (seconds on a laptop), ``gpu`` (minutes) or ``full``.
    n_tokens, networks
        Lengths T, and names from ``NETWORKS``.
    n_seeds, n_steps
        Seeds of every setting, and updates of each.
    d_in, batch_size, learning_rate, eval_size
        Token dimension d, samples a step, AdamW's rate (5% warm-up, cosine to 0, gradient clipped to 1), held-out
        samples, drawn once a seed.
    seed, device
        Base seed, and where to train.
    """

    profile: str = "quick"
    n_tokens: tuple[int, ...] | None = None
    networks: tuple[str, ...] | None = None
    n_seeds: int | None = None
    n_steps: int | None = None
    d_in: int = 4
    batch_size: int = 128
    learning_rate: float = 5e-3
    eval_size: int = 4096
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        common.fill(self, _PRESETS)
        for network in self.networks:
            if network not in NETWORKS:
                raise ValueError(unknown("network", network, NETWORKS))


@dataclass(frozen=True)
class Result:
    """Held-out errors and sizes.

    ``nmse`` has shape [len(n_tokens), len(networks), n_seeds] (0 perfect, 1 a constant); ``parameters`` one count a
    network.
    """

    n_tokens: tuple[int, ...]
    networks: tuple[str, ...]
    parameters: tuple[int, ...]
    nmse: np.ndarray


def matrix(d_in: int) -> torch.Tensor:
    """Return A = -I [d, d]: the best pair is the most opposite one."""
    return -torch.eye(d_in)


def spec(config: Config, network: str) -> EncoderSpec:
    """Describe a network by its name."""
    return EncoderSpec(d_in=config.d_in, d_out=1, embedding="mlp", **NETWORKS[network])


def train(config: Config, n_tokens: int, network: str, stop_after: int | None = None) -> list[Trained]:
    """Train all seeds of one network in one pass; the held-out value is the NMSE."""
    target = matrix(config.d_in)

    def batch(generator, n):
        return pairs.draw(generator, n, n_tokens, target)

    def nmse(model, samples):
        return common.mean_square(model, samples) / samples[1].var(correction=0)

    return common.train_seeds(config, spec(config, network), batch, nmse, stop_after)


def shards(config: Config) -> list[tuple[int, str]]:
    """Independent parts of the work: one a length and network."""
    return [(n_tokens, network) for n_tokens in config.n_tokens for network in config.networks]


def run_shard(config: Config, shard: tuple[int, str]) -> list[float]:
    """NMSE of every seed of one network at one length."""
    return [trained.final for trained in train(config, *shard)]


def combine(config: Config, parts: list[list[float]]) -> Result:
    """Put the shards, in the order of :func:`shards`, into one result."""
    built = [Encoder(spec(config, network), device="meta") for network in config.networks]
    parameters = tuple(sum(p.numel() for p in model.parameters()) for model in built)
    shape = (len(config.n_tokens), len(config.networks), config.n_seeds)
    return Result(config.n_tokens, config.networks, parameters, np.array(parts).reshape(shape))


def run(config: Config) -> Result:
    """Train every network at every length of ``config``."""
    return combine(config, [run_shard(config, shard) for shard in shards(config)])


def first_losses(config: Config, n_steps: int) -> list[float]:
    """Training losses of the first steps of the first network at the first length, averaged over seeds."""
    trained = train(config, *shards(config)[0], stop_after=n_steps)
    return np.mean([member.losses for member in trained], axis=0).tolist()


RECORDINGS = {"depth": Config(profile="full")}
