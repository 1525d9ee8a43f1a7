"""Many small models side by side: one batched pass instead of a loop over seeds and settings.

The parameters of M models of P numbers each are the rows of one ``[M, P]`` matrix. A vectorised pass gives the losses
of all, one backward pass the gradients, and what follows works row by row: members meet nowhere.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from manyheads.training import checks, engine, membership, optimizers, precision
from manyheads.training.checks import Batch
from manyheads.training.config import TrainConfig
from manyheads.training.engine import Draw, Loss, Result
from manyheads.training.learning_rate import factor
from manyheads.training.structure import slots, tied

SHARED = (
    *("n_steps", "batch_size", "optimizer", "eval_every", "eval_size", "device", "dtype"),
    *("stop_after", "checkpoint", "checkpoint_every"),
)
CACHE_BYTES = 32 * 2**20  # what a processor keeps close; a pass over more members than fit gains nothing
GPU_BYTES = 4 * 2**30
NOT_FOR_ALL = "vmap|[Bb]atching rule|[Bb]atch norm got a batched|'function' object has no attribute"  # torch's words


def train(
    make_model: Callable[[int], nn.Module] | Sequence[nn.Module],
    batch: Draw,
    loss: Loss,
    configs: Sequence[TrainConfig],
    held_out: Draw | None = None,
    evaluate: Loss | None = None,
) -> list[Result]:
    """Train one member per config, all at once, to the numbers that :func:`manyheads.training.train` gives each.

    >>> from dataclasses import replace
    >>> config = TrainConfig(n_steps=1000, learning_rate=3e-3, clip_norm=1.0)
    >>> configs = [replace(config, seed=seed) for seed in range(10)]

    Parameters
    ----------
    make_model
        Makes a member from its seed: ``lambda seed: seeds.initialise(Encoder(spec), seed)``. Or the members
        themselves; they are trained in place. They differ in the numbers of their parameters and buffers and in nothing
        else. Parameters may be tied, and a forward pass may change buffers in place, as batch normalisation does.
    batch, loss, held_out, evaluate
        As in :func:`manyheads.training.train`. Every member sees the samples of its own seed; members with the same
        seed see the same ones. ``loss`` gets a function in place of the module, so it calls it and does nothing else
        with it; whatever it computes from the samples (a target, say) is computed for all members at once.
    configs
        One per member. They share sizes, optimiser and place; seeds, learning rates, decay, momentum, schedules and
        clipping are each member's own.

    Returns
    -------
    list of Result
        In the order of ``configs``. After a keyboard interrupt, all have made the same number of steps.

    Raises
    ------
    ValueError
        As :func:`manyheads.training.train`, and for no member; members of different shapes or structure, or that share
        memory; configs that do not share what they must; half precision: small models do not gain from it; and for what
        one pass cannot do for all members: draw at random as dropout does, or branch on a number. All of it before
        the first step, as far as a pass in training mode can tell.
    UnsavedCheckpoint
        As :func:`manyheads.training.train`; whatever ends the run, all models get back what they had learned.
    """
    configs = _checked(configs)
    stacked = Stacked(_models(make_model, configs), batch, loss, configs, held_out or batch, evaluate or loss)
    stacked.try_evaluation()
    return engine.run(stacked, configs, name=f"training {len(configs)} models")


class Stacked:
    """Many models and one optimiser: the engine's other trainee."""

    def __init__(
        self,
        models: list[nn.Module],
        batch: Draw,
        loss: Loss,
        configs: list[TrainConfig],
        held_out: Draw,
        evaluate: Loss,
    ):
        self.device = torch.device(configs[0].device)
        self.dtype = precision.on(self.device, configs[0].dtype).parameters
        self.batch, self.loss, self.configs, self.metric = batch, loss, configs, evaluate
        self.shape: tuple[int, ...] = (len(configs),)
        self.models, self.model = models, models[0]
        for m, model in enumerate(models):
            checks.trainable(model, self.device, f"models[{m}]")
            precision.check(model, precision.Precision(self.dtype))
        membership.check(models)

        self.shapes = {name: parameter.shape for name, parameter in checks.trained(self.model).items()}
        self.sizes = [shape.numel() for shape in self.shapes.values()]
        self.flat = torch.stack([self._row(model) for model in models])
        fixed = [membership.fixed(model) for model in models]
        self.fixed = {name: torch.stack([own[name].to(self.device) for own in fixed]) for name in fixed[0]}
        self.replaced = {id(tensor): repr(name) for model in models for name, tensor in slots(model).items()}
        self.tied = tied(self.model)
        self.moving = [name for name, _ in self.model.named_buffers() if name in self.fixed]
        self.template = membership.template(self.model)
        self.clip = torch.tensor([c.clip_norm or torch.inf for c in configs], device=self.device, dtype=self.dtype)

        # A group of the optimiser is a run of members that differ in seed and clipping at most; it sees their rows as
        # one tensor.
        self.groups, groups = [], []
        for config, alike in groupby(range(len(configs)), key=lambda m: replace(configs[m], seed=0, clip_norm=None)):
            run = list(alike)
            self.groups.append((config, slice(run[0], run[-1] + 1)))
            groups.append(optimizers.group(config, [self.flat[self.groups[-1][1]]]))
        self.optimizer = optimizers.optimizer(configs[0], groups, self.device)

        self.held_out = self._draw(held_out, "held out", configs[0].eval_size)
        self.per_pass = self._members_per_pass()

    def buffers(self) -> list[Tensor]:
        """Return what a forward pass may change."""
        return [self.fixed[name] for name in self.moving]

    def gradients(self, step: int) -> Tensor:
        """Compute losses and gradients of a step, [M]."""
        self.template.train()
        batch = self._draw(self.batch, f"batch {step}", self.configs[0].batch_size)
        values, gradients = [], []
        for members in _slices(len(self.configs), self.per_pass):
            rows = self.flat[members].requires_grad_()
            with checks.number_types_named(batch, self.dtype, skip=1):
                value = checks.differentiable(self._losses(self.loss, rows, batch, members))
                # Rows meet in no operation, so the gradient of the sum is every member's own.
                gradients.append(torch.autograd.grad(value.sum(), rows)[0])
            values.append(value.detach())
        self.gradient = torch.cat(gradients)
        return torch.cat(values)

    def update(self, step: int) -> None:
        """Clip every row, set the learning rates, and take the step."""
        length = torch.linalg.vector_norm(self.gradient, dim=1)
        shorter = (self.clip / (length + 1e-6)).clamp(max=1.0)  # as torch.nn.utils.clip_grad_norm_ has it
        self.gradient *= shorter.masked_fill(self.clip.isinf(), 1.0)[:, None]  # where length is infinite too: no nan
        for group, (config, members) in zip(self.optimizer.param_groups, self.groups, strict=True):
            group["lr"] = config.learning_rate * factor(config, step)
            group["params"][0].grad = self.gradient[members]
        self.optimizer.step()

    @torch.no_grad()
    def evaluate(self) -> Tensor:
        """Return the held-out values, [M]."""
        self.template.eval()
        at_once = max(1, self.per_pass * self.configs[0].batch_size // self.configs[0].eval_size)
        parts = _slices(len(self.configs), at_once)
        with checks.number_types_named(self.held_out, self.dtype, skip=1):
            return torch.cat([self._losses(self.metric, self.flat[part], self.held_out, part) for part in parts])

    @torch.no_grad()
    def try_evaluation(self) -> None:
        """Find out before the first step what would fail after the last."""
        self._try(self.metric, self.held_out, training=False)

    def state(self) -> dict[str, Tensor]:
        """Return all parameters, what stays fixed, and the optimiser's memory."""
        fixed = {f"model.{name}": tensor for name, tensor in self.fixed.items()}
        return {"model.rows": self.flat} | fixed | optimizers.state(self.optimizer)

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what :meth:`state` returned."""
        self.flat.copy_(tensors["model.rows"])
        for name, tensor in self.fixed.items():
            tensor.copy_(tensors[f"model.{name}"])
        optimizers.load_state(self.optimizer, tensors)

    @torch.no_grad()
    def result(self, trace: engine.Trace) -> list[Result]:
        """Give every model its row, and return what training left behind."""
        losses = trace.losses[: trace.done].cpu().numpy()
        results = []
        for m, (model, config) in enumerate(zip(self.models, self.configs, strict=True)):
            model.to(self.device).train(self.template.training)
            new = self._unflattened(self.flat[m]) | {name: tensor[m] for name, tensor in self.fixed.items()}
            for name, tensor in (checks.trained(model) | membership.fixed(model)).items():
                tensor.copy_(new[self.tied.get(name, name)])  # a move to another device may have untied it
            evaluations = tuple((step, values[m]) for step, values in trace.evaluations)
            results.append(Result(model, losses[:, m].copy(), evaluations, trace.seconds, trace.interrupted, config))
        return results

    def _losses(
        self, loss: Loss, rows: Tensor, batch: Batch, members: slice, fixed: dict[str, Tensor] | None = None
    ) -> Tensor:
        """Call the members one pass, [members]; on copies of what stays fixed if they are given."""
        name = "loss" if loss is self.loss else "evaluate"

        def one(row: Tensor, fixed: dict[str, Tensor], samples: Batch) -> Tensor:
            given = self._unflattened(row) | fixed
            given |= {place: given[first] for place, first in self.tied.items()}
            tensors = dict(given)

            def model(*args: Any, **kwargs: Any) -> Any:
                return functional_call(self.template, tensors, args, kwargs, tie_weights=False)  # all are named

            value = checks.scalar(loss(model, samples), name)
            for place, tensor in given.items():
                if tensors[place] is not tensor:
                    raise ValueError(
                        f"a forward pass puts another tensor in the place of {place!r}, which an ensemble would lose; "
                        "change it in place, or train the members one by one"
                    )
            return value

        if fixed is None:
            fixed = {name: tensor[members] for name, tensor in self.fixed.items()}
        try:
            with sdpa_kernel(SDPBackend.MATH), ShortRows():
                return vmap(one)(rows, fixed, checks.each(lambda x: x[members], batch))
        except (RuntimeError, AttributeError) as error:
            if not re.search(NOT_FOR_ALL, str(error)):
                raise
            raise ValueError(
                f"one pass over all members cannot run this {name}: {str(error).splitlines()[0]}; train them one by one"
            ) from error

    def _row(self, model: nn.Module) -> Tensor:
        own = checks.trained(model)
        return torch.cat([own[name].detach().flatten() for name in self.shapes]).to(self.device)

    def _unflattened(self, row: Tensor) -> dict[str, Tensor]:
        pieces = row.split(self.sizes)
        return {n: piece.view(shape) for (n, shape), piece in zip(self.shapes.items(), pieces, strict=True)}

    def _draw(self, batch: Draw, purpose: str, n: int) -> Batch:
        drawn = {s: engine.draw(batch, s, purpose, n) for s in dict.fromkeys(c.seed for c in self.configs)}
        stacked = _stack([drawn[config.seed] for config in self.configs])
        return engine.place(stacked, self.device, self.dtype)

    def _members_per_pass(self) -> int:
        """As many as keep what one pass remembers for the way back within the cache (or the GPU's memory)."""
        sizes = []
        batch = self._draw(self.batch, "batch 0", self.configs[0].batch_size)

        def weigh(x: Tensor) -> Tensor:
            sizes.append(x.numel() * x.itemsize)
            return x

        with torch.autograd.graph.saved_tensors_hooks(weigh, lambda x: x):
            self._try(self.loss, batch, training=True)
        budget = CACHE_BYTES if self.device.type == "cpu" else GPU_BYTES
        return min(len(self.configs), max(1, budget // max(1, sum(sizes))))

    def _try(self, loss: Loss, batch: Batch, training: bool) -> None:
        """Call one member, on copies: what a pass cannot do for all members is refused here."""
        fixed = {name: tensor[:1].clone() for name, tensor in self.fixed.items()}
        replaced = self.replaced | {id(tensor): repr(name) for name, tensor in slots(self.template).items()}
        untouched = copy.deepcopy(self.template)
        self.template.train(training)
        with checks.number_types_named(batch, self.dtype, skip=1), NothingElse(replaced):
            value = self._losses(loss, self.flat[:1].clone().requires_grad_(), batch, slice(0, 1), fixed)
        if training:
            checks.differentiable(value)
        membership.check_left(untouched, self.template)
        self.template = untouched


class ShortRows(TorchFunctionMode):
    """Attention for vectorised passes over short sequences.

    Torch's fused kernels have no batching rule on the CPU, and its softmax is slow over a last dimension of a few
    numbers: with the keys in front it is several times faster. Masks and groups take torch's own unfused path.
    """

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replace plain attention, and nothing else."""
        kwargs = kwargs or {}
        plain = len(args) == 3 and all(value is None or value is False for value in kwargs.values())
        if function is F.scaled_dot_product_attention and plain:
            q, k, v = args
            return (k @ (q * q.shape[-1] ** -0.5).mT).softmax(-2).mT @ v
        return function(*args, **kwargs)


class NothingElse(TorchFunctionMode):
    """Refuses tensors by their identity: those that a pass replaces, and must therefore never see."""

    def __init__(self, replaced: dict[int, str]):
        super().__init__()
        self.replaced = replaced

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Look at every argument, and call the function."""
        kwargs = kwargs or {}
        for value in membership.inside((args, kwargs)):
            if id(value) in self.replaced:
                raise ValueError(
                    f"a forward pass uses {self.replaced[id(value)]} by another way than its name in the module, which "
                    "an ensemble cannot follow; read it from the module, or train the members one by one"
                )
        return function(*args, **kwargs)


def _models(
    make_model: Callable[[int], nn.Module] | Sequence[nn.Module], configs: Sequence[TrainConfig]
) -> list[nn.Module]:
    if isinstance(make_model, nn.Module) and not isinstance(make_model, nn.ModuleList):
        raise ValueError("make_model must be a function of a seed, or a list of models, not one model")
    if callable(make_model) and not isinstance(make_model, nn.ModuleList):
        return [make_model(config.seed) for config in configs]
    models = list(make_model)
    if len(models) != len(configs):
        raise ValueError(f"make_model holds {len(models)} models for {len(configs)} configs; give one per config")
    return models


def _checked(configs: Sequence[TrainConfig]) -> list[TrainConfig]:
    if isinstance(configs, TrainConfig) or not configs:
        raise ValueError("configs must be a sequence of one TrainConfig per member; nearest: [config]")
    configs = list(configs)
    for name in SHARED:
        values = list(dict.fromkeys(getattr(config, name) for config in configs))
        if len(values) > 1:
            raise ValueError(f"configs must share {name}, not {', '.join(map(repr, values))}; train them apart")
    if configs[0].dtype not in ("float32", "float64"):
        raise ValueError(f"dtype={configs[0].dtype!r} is not for ensembles of small models; nearest: 'float32'")
    return configs


def _stack(batches: list[Batch]) -> Batch:
    layouts = {(x.shape, x.dtype) if isinstance(x, Tensor) else len(x) for x in batches}
    if len(layouts) > 1:
        described = dict.fromkeys(map(checks.describe, batches))
        raise ValueError(
            f"batch returns {' or '.join(described)}, but all members need samples alike; train them apart"
        )
    if isinstance(batches[0], Tensor):
        return torch.stack(batches)
    return tuple(_stack(list(parts)) for parts in zip(*batches, strict=True))


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
