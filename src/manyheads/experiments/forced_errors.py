"""Chapter 3: what a certificate forces on a trained one-layer network, next to the error that it makes on the pair.

The networks are those of :mod:`~manyheads.experiments.depth`, one layer of width 16, with tokens of dimension 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from manyheads.experiments import certificates, depth, recipe, sweep
from manyheads.training import Result

NETWORK = "one layer, E = 16, H = 2"


@dataclass(frozen=True, kw_only=True)
class Config(sweep.Config):
    """What to train and certify.

    Attributes
    ----------
    n_tokens
        Lengths T.
    n_seeds, n_steps
        Trained layers a length, and their training steps.
    n_starts, walk
        Starts and steps of the search for a pair.
    """

    PROFILES: ClassVar = {
        "gpu": {"n_tokens": (8,), "n_seeds": 4, "n_steps": 2000},
        "full": {"n_tokens": (16,), "n_seeds": 6, "n_steps": 2000},
    }
    AXES: ClassVar = {"n_tokens": "n_tokens"}

    n_tokens: tuple[int, ...] = (4,)
    n_seeds: int = 2
    n_steps: int = 200
    n_starts: int = 6
    walk: int = 80


def train(config: Config, n_tokens: int, stop_after: int | None = None) -> list[Result]:
    """Train the networks of one length."""
    settings = depth.Config(
        n_tokens=(n_tokens,),
        n_seeds=config.n_seeds,
        n_steps=config.n_steps,
        d_in=2,
        seed=config.seed,
        device=config.device,
    )
    return depth.train(settings, n_tokens, NETWORK, stop_after)


def measure(config: Config, n_tokens: int) -> dict[str, list[float]]:
    """``bound``: half the gap of the best pair of every network; ``error``: the larger of its errors on that pair."""
    search = certificates.Config(n_starts=config.n_starts, walk=config.walk, device=config.device)
    bounds, errors = [], []
    for seed, trained in enumerate(train(config, n_tokens)):
        model = trained.model.double().requires_grad_(False)
        found = certificates.certify(search, model, n_tokens, seed)  # type: ignore[arg-type] # an encoder it is
        bounds.append(found.target_gap / 2)
        missed = [model(x[None])[0, 0] - certificates.target(x) for x in (found.x, found.x_other)]
        errors.append(float(torch.stack(missed).abs().max()))
    return {"bound": bounds, "error": errors}


def replay(config: Config, recorded: Mapping[str, Any] | None = None) -> dict[str, list[float]]:
    """``loss``: of the first steps of the training, averaged over seeds."""
    return {"loss": recipe.first_losses(train(config, config.n_tokens[0], stop_after=recipe.REPLAYED_STEPS))}
