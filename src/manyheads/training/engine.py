"""What every training run does, whatever is trained: count steps, evaluate, show progress, save, resume, stop."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.models.seeds import generator
from manyheads.progress import progress
from manyheads.training import checkpoint
from manyheads.training.checks import Batch, each
from manyheads.training.config import TrainConfig

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
    """What the engine can train: one model, or many side by side. Values have shape [] or [members].

    ``model`` shows the structure of what is trained.
    """

    shape: tuple[int, ...]
    device: torch.device
    model: nn.Module

    def buffers(self) -> list[Tensor]:
        """Return what a forward pass may change: running statistics, for instance."""

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

    def result(self, trace: Trace) -> Any:
        """Leave in the models what was trained, and return what the caller gets."""


@dataclass
class Trace:
    """Losses ``[steps done, *shape]``, evaluations, seconds; filled while the run goes on.

    ``whole`` is false while an update is under way, and after one that failed.
    """

    losses: Tensor
    evaluations: list[tuple[int, Any]]
    done: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    whole: bool = True


def run(trainee: Trainee, configs: list[TrainConfig], name: str = "training") -> Any:
    """Train to the last step, or to a keyboard interrupt, and return the trainee's result.

    Whatever else ends the run, the models and the checkpoint keep what the steps before it made. ``configs[0]`` holds
    what all members share.
    """
    config = configs[0]
    losses = torch.empty(config.n_steps, *trainee.shape, dtype=torch.float64, device=trainee.device)
    trace = Trace(losses, [])
    if config.checkpoint is not None:
        checkpoint.rehearse(config.checkpoint, *_content(trainee, configs, trace))
        if Path(config.checkpoint).is_file():
            _resume(config.checkpoint, trainee, configs, trace)
    begun = trace.done
    try:
        _steps(trainee, configs, trace, name)
    except KeyboardInterrupt:
        trace.interrupted = True
    except checkpoint.UnsavedCheckpoint:
        raise
    except BaseException as error:
        try:
            _finish(trainee, configs, trace, save=trace.whole and trace.done > begun)
        except Exception as another:
            error.add_note(str(another))
        raise
    return _finish(trainee, configs, trace)


def _steps(trainee: Trainee, configs: list[TrainConfig], trace: Trace, name: str) -> None:
    config = configs[0]
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
            with _unchanged_unless_done(trainee.buffers()):
                loss = trainee.gradients(trace.done)
            with uninterrupted():  # or an interrupt could leave half an update
                trace.whole = False
                trainee.update(trace.done)
                trace.losses[trace.done] = loss
                trace.done += 1
                trace.whole = True
            bar.update()
            if not bar.disable and time.perf_counter() - looked > SECONDS_BETWEEN_LOOKS:
                bar.set_postfix_str(f"loss {float(loss.mean()):.3g}", refresh=False)
                looked = time.perf_counter()
            trace.seconds = time.perf_counter() - start
            if config.checkpoint_every and trace.done % config.checkpoint_every == 0 and trace.done < last:
                _save(trainee, configs, trace)
    finally:
        bar.close()
        trace.seconds = time.perf_counter() - start


def _finish(trainee: Trainee, configs: list[TrainConfig], trace: Trace, save: bool = True) -> Any:
    with suppress(KeyboardInterrupt), uninterrupted():  # one that comes now finds nothing left to stop
        result = trainee.result(trace)
        if save:
            _save(trainee, configs, trace)
    return result


@contextmanager
def _unchanged_unless_done(buffers: list[Tensor]) -> Iterator[None]:
    """Put buffers back when the block fails or is interrupted: a step that was not made has moved nothing."""
    before = [buffer.clone() for buffer in buffers]
    try:
        yield
    except BaseException:
        with torch.no_grad():
            for buffer, old in zip(buffers, before, strict=True):
                buffer.copy_(old)
        raise


def _evaluation_due(config: TrainConfig, trace: Trace) -> bool:
    if trace.evaluations and trace.evaluations[-1][0] == trace.done:
        return False  # resumed right after it
    regular = config.eval_every is not None and trace.done % config.eval_every == 0
    return regular or trace.done == config.n_steps


def draw(batch: Draw, seed: int, purpose: str, n: int) -> Batch:
    """Draw n samples by the name of their purpose: ``"held out"``, or ``"batch 7"`` for step 7."""
    return each(lambda tensor: tensor, batch(generator(seed, "training", purpose), n))


def place(batch: Batch, device: torch.device, dtype: torch.dtype) -> Batch:
    """Move a batch to its device; its floating-point tensors get the type of the parameters."""
    return each(lambda x: x.to(device, dtype if x.is_floating_point() else None, non_blocking=True), batch)


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


def _content(trainee: Trainee, configs: list[TrainConfig], trace: Trace) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors = {**trainee.state(), "losses": trace.losses[: trace.done]}
    values = {"configs": _comparable(configs), "evaluations": trace.evaluations, "seconds": trace.seconds}
    return tensors, values | {"model": _outline(trainee.model)}


def _outline(model: nn.Module) -> list[str]:
    """Write down what makes a model another one in spite of equal shapes: its parts, their options, what is frozen."""
    frozen = [f"{name} frozen" for name, parameter in model.named_parameters() if not parameter.requires_grad]
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(model))  # another process has other addresses
    return text.splitlines() + frozen


def _save(trainee: Trainee, configs: list[TrainConfig], trace: Trace) -> None:
    path = configs[0].checkpoint
    if path is None:
        return
    try:
        checkpoint.save(path, *_content(trainee, configs, trace))
    except OSError as error:
        raise checkpoint.unsaved(path, error, trainee.result(trace)) from error


def _resume(path: str, trainee: Trainee, configs: list[TrainConfig], trace: Trace) -> None:
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
    outline = _outline(trainee.model)
    for had, has in zip_longest(values.get("model", outline), outline, fillvalue="nothing"):
        if had != has:
            raise checkpoint.damaged(path, f"its model has {had.strip()}, this one {has.strip()}")
    trainee.load_state(tensors)
    trace.done = len(tensors["losses"])
    trace.losses[: trace.done] = tensors["losses"].to(trace.losses)
    trace.evaluations = [(step, value) for step, value in values["evaluations"]]
    trace.seconds = values["seconds"]
