"""Many small models side by side: one batched pass instead of a loop over seeds and settings.

The parameters of M models of P numbers each are the rows of one ``[M, P]`` matrix. A vectorised pass gives the losses
of all, one backward pass the gradients, and what follows works row by row: members meet nowhere.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from manyheads.training import engine, precision
from manyheads.training.config import TrainConfig
from manyheads.training.engine import Draw, Loss, Result
from manyheads.training.schedule import factor

SHARED = ("n_steps", "batch_size", "optimizer", "eval_every", "eval_size", "device", "dtype")
SHARED += ("stop_after", "checkpoint", "checkpoint_every")
CACHE_BYTES = 32 * 2**20  # what a processor keeps close; a pass over more members than fit gains nothing
GPU_BYTES = 4 * 2**30


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
        themselves; they are trained in place. All have the same shapes.
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
        For no member, members of different shapes, configs that do not share what they must, and half precision:
        small models do not gain from it.
    """
    configs = _checked(configs)
    if callable(make_model):
        models = [make_model(config.seed) for config in configs]
    else:
        models = list(make_model)
        if len(models) != len(configs):
            raise ValueError(f"make_model holds {len(models)} models for {len(configs)} configs; give one per config")
    stacked = Stacked(models, batch, loss, configs, held_out or batch, evaluate or loss)
    trace = engine.run(stacked, configs, name=f"training {len(configs)} models")
    stacked.write_back(models)
    losses = trace.losses[: trace.done].cpu().numpy()
    return [
        Result(
            model,
            losses[:, m].copy(),
            tuple((step, values[m]) for step, values in trace.evaluations),
            trace.seconds,
            trace.interrupted,
            config,
        )
        for m, (model, config) in enumerate(zip(models, configs, strict=True))
    ]


class Stacked:
    """Many models and one optimiser: the engine's other trainee."""

    def __init__(self, models, batch: Draw, loss: Loss, configs, held_out: Draw, evaluate: Loss):
        self.device = torch.device(configs[0].device)
        self.dtype = precision.on(self.device, configs[0].dtype).parameters
        self.batch, self.loss, self.configs, self.metric = batch, loss, configs, evaluate
        self.shape = (len(configs),)
        self._check(models)

        self.shapes = {name: parameter.shape for name, parameter in _trained(models[0]).items()}
        self.sizes = [shape.numel() for shape in self.shapes.values()]
        rows = [torch.cat([p.detach().flatten() for p in _trained(model).values()]) for model in models]
        self.flat = torch.stack(rows).to(self.device)
        fixed = [_fixed(model) for model in models]
        self.fixed = {name: torch.stack([own[name] for own in fixed]).to(self.device) for name in fixed[0]}
        self.template = copy.deepcopy(models[0]).to("meta")  # a stray use of its own weights fails
        self.clip = torch.tensor([c.clip_norm or torch.inf for c in configs], device=self.device, dtype=self.dtype)

        # A group of the optimiser is a run of members that differ in seed and clipping at most; it sees their rows as
        # one tensor.
        self.groups, groups = [], []
        for config, members in groupby(range(len(configs)), key=lambda m: replace(configs[m], seed=0, clip_norm=None)):
            members = list(members)
            self.groups.append((config, slice(members[0], members[-1] + 1)))
            groups.append(engine.group(config, [self.flat[self.groups[-1][1]]]))
        self.optimizer = engine.optimizer(configs[0], groups, self.device)

        self.held_out = self._draw(held_out, "held out", configs[0].eval_size)
        self.per_pass = self._members_per_pass()

    def gradients(self, step: int) -> Tensor:
        """Compute losses and gradients of a step, [M]."""
        self.template.train()
        batch = self._draw(self.batch, f"batch {step}", self.configs[0].batch_size)
        values, gradients = [], []
        for members in _slices(len(self.configs), self.per_pass):
            rows = self.flat[members].requires_grad_()
            value = self._losses(self.loss, rows, batch, members)
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
        return torch.cat([self._losses(self.metric, self.flat[part], self.held_out, part) for part in parts])

    def state(self) -> dict[str, Tensor]:
        """Return all parameters, what stays fixed, and the optimiser's memory."""
        fixed = {f"model.{name}": tensor for name, tensor in self.fixed.items()}
        return {"model.rows": self.flat} | fixed | engine.optimizer_state(self.optimizer)

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what :meth:`state` returned."""
        self.flat.copy_(tensors["model.rows"])
        for name, tensor in self.fixed.items():
            tensor.copy_(tensors[f"model.{name}"])
        engine.load_optimizer_state(self.optimizer, tensors)

    @torch.no_grad()
    def write_back(self, models: list[nn.Module]) -> None:
        """Give every model its row."""
        for m, model in enumerate(models):
            model.to(self.device)
            own, new = _trained(model) | _fixed(model), self._unflattened(self.flat[m])
            for name, tensor in own.items():
                tensor.copy_(new[name] if name in new else self.fixed[name][m])

    def _losses(self, loss: Loss, rows: Tensor, batch, members: slice) -> Tensor:
        def one(row, fixed, samples):
            tensors = self._unflattened(row) | fixed
            return loss(lambda *args, **kwargs: functional_call(self.template, tensors, args, kwargs), samples)

        fixed = {name: tensor[members] for name, tensor in self.fixed.items()}
        with sdpa_kernel(SDPBackend.MATH), ShortRows():
            return vmap(one)(rows, fixed, _part(batch, members))

    def _unflattened(self, row: Tensor) -> dict[str, Tensor]:
        pieces = row.split(self.sizes)
        return {n: piece.view(shape) for (n, shape), piece in zip(self.shapes.items(), pieces, strict=True)}

    def _draw(self, batch: Draw, purpose: str, n: int):
        drawn = {s: engine.draw(batch, s, purpose, n) for s in dict.fromkeys(c.seed for c in self.configs)}
        stacked = _stack([drawn[config.seed] for config in self.configs])
        return engine.place(stacked, self.device, self.dtype)

    def _members_per_pass(self) -> int:
        """As many as keep what one pass remembers for the way back within the cache (or the GPU's memory)."""
        sizes = []
        one = slice(0, 1)
        batch = self._draw(self.batch, "batch 0", self.configs[0].batch_size)
        with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel() * x.itemsize) or x, lambda x: x):
            self._losses(self.loss, self.flat[one].requires_grad_(), batch, one)
        budget = CACHE_BYTES if self.device.type == "cpu" else GPU_BYTES
        return min(len(self.configs), max(1, budget // max(1, sum(sizes))))

    def _check(self, models) -> None:
        first = {name: p.shape for name, p in (_trained(models[0]) | _fixed(models[0])).items()}
        for m, model in enumerate(models):
            shapes = {name: p.shape for name, p in (_trained(model) | _fixed(model)).items()}
            if shapes != first:
                name = next(n for n in first | shapes if first.get(n) != shapes.get(n))
                have, want = (list(s[name]) if name in s else "none" for s in (shapes, first))
                raise ValueError(f"models[{m}] has {name!r} of shape {have}, models[0] {want}; train them apart")
            precision.check(model, precision.Precision(self.dtype))


class ShortRows(TorchFunctionMode):
    """Attention for vectorised passes over short sequences.

    Torch's fused kernels have no batching rule on the CPU, and its softmax is slow over a last dimension of a few
    numbers: with the keys in front it is several times faster. Masks and groups take torch's own unfused path.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Replace plain attention, and nothing else."""
        kwargs = kwargs or {}
        plain = len(args) == 3 and all(value is None or value is False for value in kwargs.values())
        if function is F.scaled_dot_product_attention and plain:
            q, k, v = args
            return (k @ (q * q.shape[-1] ** -0.5).mT).softmax(-2).mT @ v
        return function(*args, **kwargs)


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


def _trained(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def _fixed(model: nn.Module) -> dict[str, Tensor]:
    frozen = {name: parameter.detach() for name, parameter in model.named_parameters() if not parameter.requires_grad}
    return frozen | dict(model.named_buffers())


def _stack(batches: list):
    if isinstance(batches[0], Tensor):
        return torch.stack(batches)
    return tuple(_stack(list(parts)) for parts in zip(*batches, strict=True))


def _part(batch, members: slice):
    return batch[members] if isinstance(batch, Tensor) else tuple(_part(part, members) for part in batch)


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
