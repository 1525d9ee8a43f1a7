"""One training loop for everything: regression and language models, on a CPU or a GPU."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from manyheads.training import engine, precision
from manyheads.training.config import TrainConfig
from manyheads.training.engine import Draw, Loss, Result
from manyheads.training.schedule import factor


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
        have seen. Floating-point tensors are cast to the type of the parameters.
    loss
        ``loss(model, batch)`` calls the model and returns a scalar.
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
        When the parameters do not have the type that the config asks for, for a number format that the device does not
        have, and, as ``DamagedCheckpoint``, when the checkpoint cannot be used.
    """
    one = Single(model, batch, loss, config, held_out or batch, evaluate or loss)
    trace = engine.run(one, [config])
    losses = trace.losses[: trace.done].cpu().numpy()
    return Result(model, losses, tuple(trace.evaluations), trace.seconds, trace.interrupted, config)


class Single:
    """One model and its optimiser: the engine's simplest trainee."""

    shape = ()

    def __init__(self, model: nn.Module, batch: Draw, loss: Loss, config: TrainConfig, held_out: Draw, evaluate: Loss):
        self.device = torch.device(config.device)
        self.precision = precision.on(self.device, config.dtype)
        precision.check(model, self.precision)
        self.model, self.batch, self.loss, self.config = model.to(self.device), batch, loss, config
        self.metric = evaluate
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = engine.optimizer(config, [engine.group(config, self.parameters)], self.device)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision.scaled)
        self.held_out = self._place(engine.draw(held_out, config.seed, "held out", config.eval_size))

    def gradients(self, step: int) -> Tensor:
        """Compute loss and gradients of a step."""
        batch = self._place(engine.draw(self.batch, self.config.seed, f"batch {step}", self.config.batch_size))
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        with self._products():
            value = self.loss(self.model, batch)
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
        with self._products():
            return self.metric(self.model, self.held_out)

    def state(self) -> dict[str, Tensor]:
        """Return parameters, buffers, the optimiser's memory and the loss scale."""
        model = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        scale = {f"scaler.{key}": torch.tensor(value) for key, value in self.scaler.state_dict().items()}
        return model | scale | engine.optimizer_state(self.optimizer)

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what :meth:`state` returned."""

        def part(kind):
            return {name.removeprefix(kind): value for name, value in tensors.items() if name.startswith(kind)}

        self.model.load_state_dict(part("model."))
        if scale := part("scaler."):
            self.scaler.load_state_dict({key: value.item() for key, value in scale.items()})
        engine.load_optimizer_state(self.optimizer, tensors)

    def _place(self, batch):
        return engine.place(batch, self.device, self.precision.parameters)

    def _products(self):
        if self.precision.products is None:
            return nullcontext()
        return torch.autocast(self.device.type, self.precision.products)
