"""What every training run does, whatever is trained: count steps, evaluate, show progress, save, resume, stop."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.models.seeds import generator
from manyheads.progress import progress
from manyheads.training import checkpoint
from manyheads.training.config import TrainConfig

Batch = Any
"""What ``batch`` returns and ``loss`` receives: a tensor, or a tuple of them."""
Draw = Callable[[torch.Generator, int], Batch]
Loss = Callable[[Callable, Batch], Tensor]

CHANGEABLE = ("device", "stop_after", "checkpoint", "checkpoint_every")  # in a run that goes on
SECONDS_BETWEEN_LOOKS = 0.5  # at the loss, for the progress bar: a look makes a GPU wait


@dataclass(frozen=True)
class Result:
    """What training left behind. A run that was interrupted has fewer losses; everything else is as usual.

    Attributes
    ----------
    model
        The trained module, after the last complete step.
    losses
        Training loss before every step, ``[steps done]``, float64.
    evaluations
        Pairs (number of steps done, held-out value).
    seconds
        Wall time, of all parts of a run that was resumed. In an ensemble, of the whole ensemble.
    interrupted
        Whether the run stopped before its last step.
    config
        How it was trained.
    """

    model: nn.Module
    losses: np.ndarray
    evaluations: tuple[tuple[int, float], ...]
    seconds: float
    interrupted: bool
    config: TrainConfig

    @property
    def n_steps(self) -> int:
        """Number of complete steps."""
        return len(self.losses)

    @property
    def best(self) -> tuple[int, float]:
        """The smallest held-out value and when it was reached: (steps done, value); (0, nan) if none is a number."""
        finite = [pair for pair in self.evaluations if np.isfinite(pair[1])]
        return min(finite, key=lambda pair: pair[1], default=(0, float("nan")))

    @property
    def final(self) -> float:
        """The last held-out value; nan if there is none."""
        return self.evaluations[-1][1] if self.evaluations else float("nan")


class Trainee(Protocol):
    """What the engine can train: one model, or many side by side. Values have shape [] or [members]."""

    shape: tuple[int, ...]
    device: torch.device

    def gradients(self, step: int) -> Tensor:
        """Compute loss and gradients of a step; change no parameter."""

    def update(self, step: int) -> None:
        """Change the parameters."""

    def evaluate(self) -> Tensor:
        """Return the held-out value."""

    def state(self) -> dict[str, Tensor]:
        """Return everything that a later process needs to go on."""

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Take it over."""


@dataclass
class Trace:
    """Losses ``[steps done, *shape]``, evaluations, seconds; filled while the run goes on."""

    losses: Tensor
    evaluations: list[tuple[int, list]]
    done: int = 0
    seconds: float = 0.0
    interrupted: bool = False


def run(trainee: Trainee, configs: list[TrainConfig], name: str = "training") -> Trace:
    """Train to the last step, or to a keyboard interrupt. ``configs[0]`` holds what all members share."""
    config = configs[0]
    losses = torch.empty(config.n_steps, *trainee.shape, dtype=torch.float64, device=trainee.device)
    trace = Trace(losses, [])
    if config.checkpoint is not None and Path(config.checkpoint).is_file():
        _resume(trainee, configs, trace)
    last = min(config.n_steps, config.stop_after or config.n_steps)
    start = time.perf_counter() - trace.seconds
    looked = 0.0
    bar = progress(total=last, initial=trace.done, desc=name, unit="step")
    try:
        while True:
            if _evaluation_due(config, trace):
                trace.evaluations.append((trace.done, trainee.evaluate().double().cpu().tolist()))
            if trace.done >= last:
                break
            loss = trainee.gradients(trace.done)
            with uninterrupted():  # or an interrupt could leave half an update
                trainee.update(trace.done)
                trace.losses[trace.done] = loss
                trace.done += 1
            bar.update()
            if not bar.disable and time.perf_counter() - looked > SECONDS_BETWEEN_LOOKS:
                bar.set_postfix_str(f"loss {float(loss.mean()):.3g}", refresh=False)
                looked = time.perf_counter()
            trace.seconds = time.perf_counter() - start
            if config.checkpoint_every and trace.done % config.checkpoint_every == 0 and trace.done < last:
                _save(trainee, configs, trace)
    except KeyboardInterrupt:
        trace.interrupted = True
    finally:
        bar.close()
    trace.seconds = time.perf_counter() - start
    if config.checkpoint is not None:
        _save(trainee, configs, trace)
    return trace


def _evaluation_due(config: TrainConfig, trace: Trace) -> bool:
    if trace.evaluations and trace.evaluations[-1][0] == trace.done:
        return False  # resumed right after it
    regular = config.eval_every is not None and trace.done % config.eval_every == 0
    return regular or trace.done == config.n_steps


def draw(batch: Draw, seed: int, purpose: str, n: int) -> Batch:
    """Draw n samples by the name of their purpose: ``"held out"``, or ``"batch 7"`` for step 7."""
    return batch(generator(seed, "training", purpose), n)


def place(batch: Batch, device: torch.device, dtype: torch.dtype) -> Batch:
    """Move a batch to its device; its floating-point tensors get the type of the parameters."""
    if isinstance(batch, Tensor):
        return batch.to(device, dtype if batch.is_floating_point() else None, non_blocking=True)
    if isinstance(batch, (tuple, list)):
        return tuple(place(part, device, dtype) for part in batch)
    raise ValueError(f"batch must return a tensor or a tuple of tensors, not {type(batch).__name__}")


def optimizer(config: TrainConfig, groups: list[dict], device: torch.device) -> torch.optim.Optimizer:
    """Torch's optimiser over parameter groups that :func:`group` made, in one kernel where there is one."""
    kinds = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    return kinds[config.optimizer](groups, lr=config.learning_rate, fused=device.type in ("cpu", "cuda"))


def group(config: TrainConfig, parameters: list[Tensor]) -> dict:
    """Describe how ``parameters`` are updated, as torch's optimisers take it."""
    own = {"betas": config.betas} if config.optimizer == "adamw" else {"momentum": config.momentum}
    return {"params": parameters, "lr": config.learning_rate, "weight_decay": config.weight_decay, **own}


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimiser's tensors by name."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer.{index}.{key}": value
        for index, values in state.items()
        for key, value in values.items()
        if value is not None
    }


def load_optimizer_state(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give an optimiser the tensors that :func:`optimizer_state` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "optimizer":
            index, _, key = rest.partition(".")
            state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold a keyboard interrupt back until the end of the block."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # Python interrupts the main thread alone
        return
    held = []
    signal.signal(signal.SIGINT, lambda *event: held.append(event))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            before(*held[0])


def _comparable(configs: list[TrainConfig]) -> list[dict]:
    """What must be the same for a run to go on."""
    plain = json.loads(json.dumps([asdict(config) for config in configs]))
    return [{key: value for key, value in config.items() if key not in CHANGEABLE} for config in plain]


def _save(trainee: Trainee, configs: list[TrainConfig], trace: Trace) -> None:
    tensors = {**trainee.state(), "losses": trace.losses[: trace.done]}
    values = {"configs": _comparable(configs), "evaluations": trace.evaluations, "seconds": trace.seconds}
    checkpoint.save(configs[0].checkpoint, tensors, values)


def _resume(trainee: Trainee, configs: list[TrainConfig], trace: Trace) -> None:
    path = configs[0].checkpoint
    tensors, values = checkpoint.load(path)
    saved, wanted = values["configs"], _comparable(configs)
    if len(saved) != len(wanted):
        raise checkpoint.damaged(path, f"it holds {len(saved)} models, not {len(wanted)}")
    for old, new in zip(saved, wanted, strict=True):
        different = [f"{key}={old.get(key)!r}, now {new.get(key)!r}" for key in new if old.get(key) != new.get(key)]
        if different:
            raise checkpoint.damaged(path, f"it was trained with {'; '.join(different)}")
    have = {name: list(tensor.shape) for name, tensor in tensors.items() if name.startswith("model.")}
    want = {name: list(tensor.shape) for name, tensor in trainee.state().items() if name.startswith("model.")}
    for name in have | want:
        if have.get(name) != want.get(name):
            what = name.removeprefix("model.")
            raise checkpoint.damaged(path, f"its {what} has shape {have.get(name)}, the model's {want.get(name)}")
    trainee.load_state(tensors)
    trace.done = len(tensors["losses"])
    trace.losses[: trace.done] = tensors["losses"].to(trace.losses)
    trace.evaluations = [(step, value) for step, value in values["evaluations"]]
    trace.seconds = values["seconds"]
