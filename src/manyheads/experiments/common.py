"""What experiments share: profiles that fill in a config, and training all seeds of one encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch.nn.functional as F

from manyheads.experiments import PROFILES
from manyheads.models import Encoder, EncoderSpec, seeds
from manyheads.names import unknown
from manyheads.training import Result, TrainConfig, ensemble


def fill(config: Any, presets: Mapping[str, Mapping[str, Any]]) -> None:
    """Fill the fields of a frozen config that were left out from its profile; lists, as JSON has them, become tuples.

    Raises
    ------
    ValueError
        For an unknown profile: the list of those that exist.
    """
    if config.profile not in PROFILES:
        raise ValueError(unknown("profile", config.profile, PROFILES))
    for name, preset in presets[config.profile].items():
        given = getattr(config, name)
        value = preset if given is None else tuple(given) if isinstance(given, list) else given
        object.__setattr__(config, name, value)


def mean_square(model, samples):
    """Mean squared error of a model on samples (x, y)."""
    x, y = samples
    return F.mse_loss(model(x), y)


def train_seeds(config: Any, spec: EncoderSpec, batch, evaluate=mean_square, stop_after: int | None = None):
    """Train ``config.n_seeds`` encoders on the mean squared error, in one pass, and return their results.

    AdamW, 5% warm-up, cosine to 0, gradient clipped to 1; steps, batch, rate, held-out samples, base seed and device
    from ``config``. ``stop_after`` ends early on the schedule of the whole run.
    """
    shared = TrainConfig(
        n_steps=config.n_steps,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        warmup=0.05,
        clip_norm=1.0,
        eval_size=config.eval_size,
        device=config.device,
        stop_after=stop_after,
    )
    members = [replace(shared, seed=config.seed + i) for i in range(config.n_seeds)]
    trained: list[Result] = ensemble.train(
        lambda seed: seeds.initialise(Encoder(spec), seed), batch, mean_square, members, evaluate=evaluate
    )
    return trained
