"""One training loop for everything: regression and language models, on a CPU or a GPU."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.training import checks, engine, optimizers, precision
from manyheads.training.config import TrainConfig
from manyheads.training.engine import Draw, Loss, Result
from manyheads.training.learning_rate import factor


def train(
    model: nn.Module,
    batch: Draw,
    loss: Loss,
    config: TrainConfig,
    held_out: Draw | None = None,
    evaluate: Loss | None = None,
) -> Result:
    """Train a model in place, with progress on the screen, and return what there is when it ends or is interrupted.

    >>> import torch.nn.functional as F
    >>> from manyheads.models import Encoder, EncoderSpec, seeds
    >>> def batch(generator, n):  # the second largest of four numbers
    ...     x = torch.rand(n, 4, 1, generator=generator)
    ...     return x, x.sort(dim=1, descending=True).values[:, 1]
    >>> def loss(model, batch):
    ...     x, y = batch
    ...     return F.mse_loss(model(x), y)
    >>> model = seeds.initialise(Encoder(EncoderSpec(d_in=1, d_out=1, d_model=8, heads=(1,))), seed=0)
    >>> result = train(model, batch, loss, TrainConfig(n_steps=3))
    >>> result.n_steps, result.interrupted
    (3, False)

    Parameters
    ----------
    model
        Moved to ``config.device``, trained there, and left there. Initialise it first.
    batch
        ``batch(generator, n)`` returns n samples on the CPU, a tensor or a tuple of tensors, drawn from that generator
        and nothing else. Step s of seed r always gets the same generator, so a run that goes on sees what it would
        have seen. Floating-point tensors are cast to the type of the parameters; whole numbers stay what they are.
    loss
        ``loss(model, batch)`` calls the model and returns a real scalar tensor.
    config
        See :class:`manyheads.training.TrainConfig`.
    held_out
        Draws the held-out samples, once, from a generator of its own; ``batch`` unless given.
    evaluate
        What to report on them, as ``loss``; ``loss`` unless given.

    Returns
    -------
    Result
        After a keyboard interrupt too: ``result.interrupted`` is then True, and the model is as its last complete step
        left it.

    Raises
    ------
    ValueError
        When the parameters do not have the type that the config asks for, or there is none to train; for a number
        format or a device that the machine does not have; for samples that are no tensors or of a type that the model
        cannot take, and a loss that is no scalar; when the checkpoint could not be written, before the first step, and,
        as ``DamagedCheckpoint``, when it cannot be used.
    UnsavedCheckpoint
        When the checkpoint cannot be written later. The model is then trained as far as it was, and the error's
        attribute ``result`` holds the result. Any other error, too, leaves the steps before it in model and checkpoint.
    """
    one = Single(model, batch, loss, config, held_out or batch, evaluate or loss)
    return engine.run(one, [config])


class Single:
    """One model and its optimiser: the engine's simplest trainee."""

    shape: tuple[int, ...] = ()

    def __init__(self, model: nn.Module, batch: Draw, loss: Loss, config: TrainConfig, held_out: Draw, evaluate: Loss):
        self.device = torch.device(config.device)
        self.precision = precision.on(self.device, config.dtype)
        checks.trainable(model, self.device)
        precision.check(model, self.precision)
        self.model, self.batch, self.loss, self.config = model.to(self.device), batch, loss, config
        self.metric, self.metric_name = evaluate, "loss" if evaluate is loss else "evaluate"
        self.parameters = list(checks.trained(self.model).values())
        self.optimizer = optimizers.optimizer(config, [optimizers.group(config, self.parameters)], self.device)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision.scaled)
        self.held_out = self._place(engine.draw(held_out, config.seed, "held out", config.eval_size))

    def buffers(self) -> list[Tensor]:
        """Return what a forward pass may change."""
        return list(self.model.buffers())

    def gradients(self, step: int) -> Tensor:
        """Compute loss and gradients of a step."""
        batch = self._place(engine.draw(self.batch, self.config.seed, f"batch {step}", self.config.batch_size))
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        with checks.number_types_named(batch, self.precision.parameters):
            with self._products():
                value = checks.differentiable(checks.scalar(self.loss(self.model, batch), "loss"))
            self.scaler.scale(value).backward()
        return value.detach()

    def update(self, step: int) -> None:
        """Clip, set the learning rate, and take the step."""
        if self.config.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.parameters, self.config.clip_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * factor(self.config, step)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    @torch.no_grad()
    def evaluate(self) -> Tensor:
        """Return the held-out value."""
        self.model.eval()
        with checks.number_types_named(self.held_out, self.precision.parameters), self._products():
            return checks.scalar(self.metric(self.model, self.held_out), self.metric_name)

    def state(self) -> dict[str, Tensor]:
        """Return parameters, buffers, the optimiser's memory and the loss scale."""
        model = self.model.state_dict() | dict(self.model.named_buffers())  # those too that are not persistent
        scale = {f"scaler.{key}": torch.tensor(value) for key, value in self.scaler.state_dict().items()}
        return {f"model.{name}": tensor for name, tensor in model.items()} | scale | optimizers.state(self.optimizer)

    @torch.no_grad()
    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what :meth:`state` returned."""

        def part(kind: str) -> dict[str, Tensor]:
            return {name.removeprefix(kind): value for name, value in tensors.items() if name.startswith(kind)}

        self.model.load_state_dict(part("model."), strict=False)
        for name, buffer in self.model.named_buffers():
            buffer.copy_(tensors[f"model.{name}"])
        if scale := part("scaler."):
            self.scaler.load_state_dict({key: value.item() for key, value in scale.items()})
        optimizers.load_state(self.optimizer, tensors)

    def result(self, trace: engine.Trace) -> Result:
        """Return what training left behind."""
        losses = trace.losses[: trace.done].cpu().numpy()
        return Result(self.model, losses, tuple(trace.evaluations), trace.seconds, trace.interrupted, self.config)

    def _place(self, batch: checks.Batch) -> checks.Batch:
        return engine.place(batch, self.device, self.precision.parameters)

    def _products(self) -> AbstractContextManager[Any]:
        if self.precision.products is None:
            return nullcontext()
        return torch.autocast(self.device.type, self.precision.products)
