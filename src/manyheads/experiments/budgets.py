"""Chapter 1: how well a head of dimension D can produce a given attention pattern.

Random patterns over T tokens are fitted by the query and key weights of an ordinary attention layer. Tokens are
one-hot, so the embedding costs nothing and the head dimension is the only bottleneck. The heads of one layer do not
interact here: each fits its own pattern, so all seeds train in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manyheads.experiments import common
from manyheads.models import Attention, AttentionSpec, seeds
from manyheads.theory import patterns

_PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"n_tokens": (16,), "d_heads": (1, 2, 4, 8, 15), "spreads": (2.0,), "n_seeds": 5, "n_steps": 300},
    "gpu": {
        "n_tokens": (16, 32, 64),
        "d_heads": (1, 2, 4, 8, 16, 32, 63),
        "spreads": (1.0, 2.0, 4.0),
        "n_seeds": 20,
        "n_steps": 2000,
    },
}
_PRESETS["full"] = _PRESETS["gpu"]


@dataclass(frozen=True)
class Config:
    """What to fit. Fields left out come from the profile.

    Attributes
    ----------
    profile
        ``quick`` (seconds on a laptop), ``gpu`` or ``full``.
    n_tokens
        Lengths T of the patterns.
    d_heads
        Head dimensions D to try; those above T - 1 are fitted as T - 1, where the error is 0.
    spreads
        Standard deviations of the target's log weights: 1 is a mild preference, 4 nearly picks one token.
    n_seeds, n_steps, learning_rate
        Patterns per setting, Adam steps (cosine to 0), initial rate.
    seed, device
        Base seed, and where to run.
    """

    profile: str = "quick"
    n_tokens: tuple[int, ...] | None = None
    d_heads: tuple[int, ...] | None = None
    spreads: tuple[float, ...] | None = None
    n_seeds: int | None = None
    n_steps: int | None = None
    learning_rate: float = 0.1
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        common.fill(self, _PRESETS)


@dataclass(frozen=True)
class Result:
    """Errors in nats, mean Kullback-Leibler divergence per row.

    ``trained`` and ``truncated`` have shape [len(n_tokens), len(spreads), len(d_heads), n_seeds]: the fitted layer,
    and the singular value truncation of the centred log weights, which needs no training.
    """

    n_tokens: tuple[int, ...]
    d_heads: tuple[int, ...]
    spreads: tuple[float, ...]
    trained: np.ndarray
    truncated: np.ndarray


def targets(config: Config, n_tokens: int, spread: float) -> Tensor:
    """Random patterns, softmax of Gaussian log weights, shape [n_seeds, T, T], float64 on the CPU."""
    generators = [seeds.generator(config.seed + i, "budgets", "target", f"T={n_tokens}") for i in range(config.n_seeds)]
    logs = [torch.randn(n_tokens, n_tokens, generator=generator, dtype=torch.float64) for generator in generators]
    return (spread * torch.stack(logs)).softmax(-1)


def fit(config: Config, n_tokens: int, spread: float, d_head: int) -> Iterator[Tensor]:
    """Train one layer whose h-th head fits the h-th pattern; yield all errors before each step and at the end."""
    target = targets(config, n_tokens, spread).to(config.device, torch.float32)
    layer = Attention(AttentionSpec(d_model=n_tokens, n_heads=config.n_seeds, d_head=d_head), device=config.device)
    seeds.initialise(layer, config.seed)
    tokens = torch.eye(n_tokens, device=config.device)[None]
    optimizer = torch.optim.Adam([layer.q_proj.weight, layer.k_proj.weight], lr=config.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.n_steps)
    for _ in range(config.n_steps):
        errors = patterns.divergence(target, layer(tokens, return_weights=True)[1][0])
        yield errors.detach()
        optimizer.zero_grad()
        errors.sum().backward()  # a sum, so that a head's step does not depend on how many others there are
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        yield patterns.divergence(target, layer(tokens, return_weights=True)[1][0])


def run_shard(config: Config, shard: tuple[int, float]) -> dict[str, np.ndarray]:
    """Fit all head dimensions at one length and spread."""
    n_tokens, spread = shard
    target = targets(config, n_tokens, spread)
    trained, truncated = [], []
    for d_head in config.d_heads:
        d_head = min(d_head, n_tokens - 1)
        *_, final = fit(config, n_tokens, spread, d_head)
        q_td, k_sd = patterns.queries_and_keys(target, d_head)
        best = (q_td @ k_sd.mT / d_head**0.5).softmax(-1)
        trained.append(final.double().cpu().numpy())
        truncated.append(patterns.divergence(target, best).clamp_min(0).numpy())
    return {"trained": np.stack(trained), "truncated": np.stack(truncated)}


def shards(config: Config) -> list[tuple[int, float]]:
    """Independent parts of the work: one a length and spread."""
    return [(n_tokens, spread) for n_tokens in config.n_tokens for spread in config.spreads]


def combine(config: Config, parts: list[dict[str, Any]]) -> Result:
    """Put the shards, in the order of :func:`shards`, into one result."""
    shape = (len(config.n_tokens), len(config.spreads), len(config.d_heads), config.n_seeds)
    trained, truncated = (np.array([part[key] for part in parts]).reshape(shape) for key in ("trained", "truncated"))
    return Result(config.n_tokens, config.d_heads, config.spreads, trained, truncated)


def run(config: Config) -> Result:
    """Fit every setting of ``config``."""
    return combine(config, [run_shard(config, shard) for shard in shards(config)])


def first_losses(config: Config, n_steps: int) -> list[float]:
    """Mean errors before each of the first steps, at the first length and spread and a middle head dimension."""
    d_head = config.d_heads[len(config.d_heads) // 2]
    return [float(errors.mean()) for errors in islice(fit(config, *shards(config)[0], d_head), n_steps)]


RECORDINGS = {"budgets": Config(profile="full")}
