"""How a model is trained: one frozen, validated description."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from numbers import Integral, Real

import torch

from manyheads.models.checks import positive_int
from manyheads.names import unknown
from manyheads.training.precision import DTYPES

OPTIMIZERS = ("adamw", "sgd")
SCHEDULES = ("cosine", "constant")


@dataclass(frozen=True)
class TrainConfig:
    """Steps, optimiser, schedule, evaluation, place and checkpoints of one training run.

    Numbers of other kinds, of numpy for instance, become Python's own, so that every config can be written as JSON.

    Parameters
    ----------
    n_steps, batch_size
        Number of updates, and of samples in each. A step never sees the samples of another.
    optimizer
        ``"adamw"`` (``betas``; Loshchilov and Hutter 2019, arXiv 1711.05101) or ``"sgd"`` (``momentum``), as torch
        defines them.
    learning_rate
        Its largest value; the schedule multiplies it by a factor of at most 1.
    weight_decay
        Decoupled in ``"adamw"``, added to the gradient in ``"sgd"``. It reaches every parameter.
    warmup
        Steps of linear growth at the start: a whole number, or a share of ``n_steps`` such as ``0.1``.
    schedule, final
        After it: ``"cosine"``, down to the share ``final`` of the learning rate, or ``"constant"``.
    clip_norm
        Largest Euclidean norm of the gradient of all parameters together; a longer one is shortened to it.
    eval_every, eval_size
        Held-out samples, drawn once, are evaluated before the first step, after every ``eval_every`` steps and after
        the last; with ``None`` only after the last.
    seed
        Names, with the number of the step, the samples. It does not initialise the model.
    device
        Where to train, for instance ``"cuda"``.
    dtype
        ``"float32"`` or ``"float64"``, which must be the type of the parameters; ``"bfloat16"`` or ``"float16"``, for
        the products of a float32 model on a GPU that has them; ``"auto"``, the fastest of those that is safe there.
    stop_after
        Stop after so many steps, on a schedule that still has ``n_steps``: to look at a beginning, or to go on later.
    checkpoint, checkpoint_every
        A file to go on from if it exists, and to write every so many steps (``None``: only when the run ends or is
        interrupted). A place that cannot be written is refused before the first step.

    Raises
    ------
    ValueError
        For a value out of range or an unknown name. The message names the argument, the value and what is valid.
    """

    n_steps: int
    batch_size: int = 128
    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = 0.0
    warmup: int | float = 0
    schedule: str = "cosine"
    final: float = 0.0
    clip_norm: float | None = None
    eval_every: int | None = None
    eval_size: int = 1024
    seed: int = 0
    device: str = "cpu"
    dtype: str = "float32"
    stop_after: int | None = None
    checkpoint: str | None = None
    checkpoint_every: int | None = None

    def __post_init__(self) -> None:
        resolve = partial(object.__setattr__, self)  # the one moment in which a frozen dataclass may be written
        optional = ("eval_every", "stop_after", "checkpoint_every")
        for name in ("n_steps", "batch_size", "eval_size", *optional):
            value = getattr(self, name)
            if value is not None or name not in optional:
                resolve(name, positive_int(name, value))
        for name, known in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES), ("dtype", DTYPES)):
            if getattr(self, name) not in tuple(known):
                raise ValueError(unknown(name, getattr(self, name), known))
        resolve("learning_rate", _number("learning_rate", self.learning_rate, above=0))
        resolve("weight_decay", _number("weight_decay", self.weight_decay))
        resolve("momentum", _number("momentum", self.momentum, below=1))
        resolve("final", _number("final", self.final, most=1))
        if self.clip_norm is not None:
            resolve("clip_norm", _number("clip_norm", self.clip_norm, above=0))
        resolve("betas", self._betas())
        resolve("warmup", self._warmup())
        if isinstance(self.seed, bool) or not isinstance(self.seed, Integral):
            raise ValueError(f"seed={self.seed!r} must be an integer, for instance 0")
        resolve("seed", int(self.seed))
        resolve("device", self._device())
        if self.checkpoint is not None:
            if not isinstance(self.checkpoint, (str, os.PathLike)):
                raise ValueError(f"checkpoint={self.checkpoint!r} must be the path of a file, or None")
            resolve("checkpoint", str(self.checkpoint))
        elif self.checkpoint_every is not None:
            raise ValueError(
                f"checkpoint_every={self.checkpoint_every} needs checkpoint, the path of a file; or leave it None"
            )

    @property
    def n_warmup(self) -> int:
        """Number of warm-up steps."""
        return self.warmup if isinstance(self.warmup, int) else round(self.warmup * self.n_steps)

    def _betas(self) -> tuple[float, float]:
        if isinstance(self.betas, str) or not hasattr(self.betas, "__getitem__") or len(self.betas) != 2:
            raise ValueError(f"betas={self.betas!r} must be two numbers; nearest: (0.9, 0.999)")
        first, second = (_number(f"betas[{i}]", beta, below=1) for i, beta in enumerate(self.betas))
        return first, second

    def _warmup(self) -> int | float:
        if not isinstance(self.warmup, Integral) or isinstance(self.warmup, bool):
            return _number("warmup", self.warmup, most=1)
        if not 0 <= self.warmup <= self.n_steps:
            nearest = min(max(0, self.warmup), self.n_steps)
            raise ValueError(
                f"warmup={self.warmup} must be 0 to n_steps={self.n_steps} steps; nearest: {nearest}; "
                "or give a share, such as 0.1"
            )
        return int(self.warmup)

    def _device(self) -> str:
        try:
            return str(torch.device(self.device))
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"device={self.device!r} is none that torch knows; for instance 'cpu', 'cuda'") from error


def _number(
    name: str, value: object, above: float | None = None, below: float = math.inf, most: float | None = None
) -> float:
    """Return a finite number of at least 0 (or ``above`` it), and ``below`` or at ``most`` a limit, as a float."""
    number = _float(value)
    finite = math.isfinite(number)
    low = number > above if finite and above is not None else finite and number >= 0
    if low and number < below and (most is None or number <= most):
        return number
    bounds = "above 0" if above is not None else "of at least 0"
    if most is not None:
        bounds += f" and at most {most}"
    elif below < math.inf:
        bounds += f" and below {below}"
    nearest = ""
    if finite and not low and above is None:
        nearest = "; nearest: 0"
    elif finite and most is not None:
        nearest = f"; nearest: {most}"
    raise ValueError(f"{name}={value!r} must be a finite number {bounds}{nearest}")


def _float(value: object) -> float:
    """Return a float; nan for what is no number, and for one that is too large to be a float."""
    if not isinstance(value, (Real, Decimal)) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except (OverflowError, ValueError):
        return math.nan
