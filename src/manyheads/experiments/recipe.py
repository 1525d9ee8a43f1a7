"""How the experiments train: all seeds of one model in one pass, with one recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.experiments import sweep
from manyheads.training import Result, TrainConfig, ensemble
from manyheads.training.engine import Draw, Loss

REPLAYED_STEPS = 20


@dataclass(frozen=True, kw_only=True)
class Config(sweep.Config):
    """A sweep whose points are trained: AdamW, 5% warm-up, cosine to 0, gradient clipped to 1.

    Attributes
    ----------
    n_seeds, n_steps
        Seeds of every point, and updates of each.
    batch_size, learning_rate
        Samples a step, and AdamW's rate.
    eval_size
        Held-out samples, drawn once a seed.
    """

    n_seeds: int = 3
    n_steps: int = 300
    batch_size: int = 128
    learning_rate: float = 1e-2
    eval_size: int = 4096


def train_seeds(
    config: Config,
    make_model: Callable[[int], nn.Module],
    batch: Draw,
    loss: Loss,
    evaluate: Loss | None = None,
    stop_after: int | None = None,
) -> list[Result]:
    """Train ``config.n_seeds`` models in one pass and return their results.

    Parameters
    ----------
    config
        Numbers of the recipe.
    make_model
        Makes a model from its seed.
    batch, loss, evaluate
        As in :func:`manyheads.training.train`.
    stop_after
        End early, on the schedule of the whole run.
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
    return ensemble.train(make_model, batch, loss, members, evaluate=evaluate)


def first_losses(trained: list[Result]) -> list[float]:
    """Training losses of the first steps, averaged over seeds: what a training replays."""
    return np.mean([member.losses[:REPLAYED_STEPS] for member in trained], axis=0).tolist()


def mean_square(model: Callable[[Tensor], Tensor], samples: tuple[Tensor, Tensor]) -> Tensor:
    """Mean squared error of a model on samples (x, y)."""
    x, y = samples
    return F.mse_loss(model(x), y)


def nmse(model: Callable[[Tensor], Tensor], samples: tuple[Tensor, Tensor]) -> Tensor:
    """Mean squared error over the variance of the target: 0 is perfect, 1 a constant."""
    return mean_square(model, samples) / samples[1].var(correction=0)
