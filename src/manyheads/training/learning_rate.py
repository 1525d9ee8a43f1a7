"""The learning rate over time: growth in a straight line, then constant or half a wave of the cosine."""

from __future__ import annotations

import math

from manyheads.training.config import TrainConfig


def factor(config: TrainConfig, step: int) -> float:
    r"""Return what multiplies the learning rate at update ``step`` = 0, …, n - 1.

    With w warm-up steps, n steps and final share f:

    .. math:: \frac{s + 1}{w + 1} \quad (s < w), \qquad
        f + \frac{1 - f}{2} \Bigl( 1 + \cos \pi \frac{s - w}{n - w} \Bigr) \quad (s \ge w)

    or, for the schedule ``"constant"``, 1 after warm-up. It is 1 at step w; f would be reached at step n.
    """
    warmup = config.n_warmup
    if step < warmup:
        return (step + 1) / (warmup + 1)
    if config.schedule == "constant":
        return 1.0
    share = (step - warmup) / max(1, config.n_steps - warmup)
    return config.final + (1 - config.final) * (1 + math.cos(math.pi * share)) / 2
