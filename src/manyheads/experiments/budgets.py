"""Chapter 1: how well a head of dimension D can produce a given attention pattern.

Random patterns over T tokens are fitted by the query and key weights of an ordinary attention layer. Tokens are
one-hot, so the embedding costs nothing and the head dimension is the only bottleneck. The heads of one layer do not
interact here: each fits its own pattern, so all seeds train in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import torch
from torch import Tensor

from manyheads.experiments import sweep
from manyheads.experiments.recipe import REPLAYED_STEPS
from manyheads.models import Attention, AttentionSpec, seeds
from manyheads.theory import patterns


@dataclass(frozen=True, kw_only=True)
class Config(sweep.Config):
    """What to fit.

    Attributes
    ----------
    n_tokens
        Lengths T of the patterns.
    spreads
        Standard deviations of the target's log weights: 1 is a mild preference, 4 nearly picks one token.
    d_heads
        Head dimensions D to try; those above T - 1 are fitted as T - 1, where the error is 0.
    n_seeds, n_steps, learning_rate
        Patterns per setting, Adam steps (cosine to 0), initial rate.
    """

    PROFILES: ClassVar = {
        name: {
            "n_tokens": (16, 32, 64),
            "spreads": (1.0, 2.0, 4.0),
            "d_heads": (1, 2, 4, 8, 16, 32, 63),
            "n_seeds": 20,
            "n_steps": 2000,
        }
        for name in ("gpu", "full")
    }
    AXES: ClassVar = {"n_tokens": "n_tokens", "spread": "spreads", "d_head": "d_heads"}

    n_tokens: tuple[int, ...] = (16,)
    spreads: tuple[float, ...] = (2.0,)
    d_heads: tuple[int, ...] = (1, 2, 4, 8, 15)
    n_seeds: int = 5
    n_steps: int = 300
    learning_rate: float = 0.1


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


def measure(config: Config, n_tokens: int, spread: float, d_head: int) -> dict[str, Tensor]:
    """Errors in nats, mean Kullback-Leibler divergence per row, of every seed.

    ``trained`` is the fitted layer; ``truncated`` the singular value truncation of the centred log weights, which needs
    no training.
    """
    d_head = min(d_head, n_tokens - 1)
    *_, trained = fit(config, n_tokens, spread, d_head)
    target = targets(config, n_tokens, spread)
    q_td, k_sd = patterns.queries_and_keys(target, d_head)
    best = (q_td @ k_sd.mT / d_head**0.5).softmax(-1)
    return {"trained": trained.double().cpu(), "truncated": patterns.divergence(target, best).clamp_min(0)}


def replay(config: Config, recorded: Mapping[str, Any] | None = None) -> dict[str, list[float]]:
    """``loss``: mean error before each of the first steps, at the first length and spread and a middle dimension."""
    d_head = config.d_heads[len(config.d_heads) // 2]
    first = islice(fit(config, config.n_tokens[0], config.spreads[0], d_head), REPLAYED_STEPS)
    return {"loss": [float(errors.mean()) for errors in first]}
