"""What makes many models one ensemble: tensors of the same shapes in the same places, nothing else, nothing shared."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from manyheads.training.checks import trained
from manyheads.training.structure import NOTHING, differences, slots, tied


def check(models: Sequence[nn.Module]) -> None:
    """Refuse models of which one pass over all would not give the numbers of each.

    Raises
    ------
    ValueError
        When two differ in anything but the numbers in their tensors, or share memory. The message names the member, the
        place, and what is there.
    """
    first = _tensors(models[0])
    for m, model in enumerate(models):
        if any(isinstance(part, torch.jit.ScriptModule) for part in model.modules()):
            raise ValueError(f"models[{m}] is compiled by torch.jit; nearest: the module it was made from")
        tensors = _tensors(model)
        for name in first | tensors:
            have, want = (own.get(name, "nowhere") for own in (tensors, first))
            if have != want:
                raise ValueError(f"models[{m}] has {name!r} {have}, models[0] {want}; train them apart")
        for path, want, have, cached in differences(models[0], model):
            if not cached:  # a property that one has looked up and the other has not
                raise ValueError(
                    f"models[{m}] has {path} = {_short(have)}, models[0] {_short(want)}; members may differ in the "
                    "numbers of parameters and buffers alone, so train them apart"
                )
    _check_memory(models)


def template(model: nn.Module) -> nn.Module:
    """Copy a model into one without numbers: its tensors are on the meta device, tied where those of ``model`` are."""
    memo = {}
    for tensor in slots(model).values():
        empty = torch.empty_like(tensor.detach(), device="meta")
        memo[id(tensor)] = nn.Parameter(empty, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else empty
    try:
        copied = copy.deepcopy(model, memo)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"models[0] cannot be copied, which an ensemble needs: {error}") from error
    for part in copied.modules():
        for name in [name for name in vars(part) if isinstance(getattr(type(part), name, None), cached_property)]:
            delattr(part, name)  # it may come from a member's numbers
    return copied


def check_left(before: nn.Module, after: nn.Module) -> None:
    """Refuse a template that a forward pass has changed, unless it has filled something empty, as a cache does."""
    for path, first, second, _ in differences(before, after):
        empty = first is NOTHING or first is None or (hasattr(first, "__len__") and not len(first))
        if not empty or any(map(_escaped, inside(second))):
            raise ValueError(
                f"a forward pass changes {path}, which all members of an ensemble would share; keep it in a buffer and "
                "change that in place, or train the members one by one"
            )


def fixed(model: nn.Module) -> dict[str, Tensor]:
    """Name the tensors that no optimiser changes: frozen parameters and buffers."""
    named = trained(model).keys() | tied(model).keys()
    return {name: tensor.detach() for name, tensor in slots(model).items() if name not in named}


def _tensors(model: nn.Module) -> dict[str, str]:
    """Describe the tensor in every place of a model."""
    changing, again, found = trained(model), tied(model), {}
    for name, tensor in slots(model).items():
        if is_lazy(tensor):
            raise ValueError(f"parameter {name!r} has no shape yet; call the model on samples first")
        kind = f"tied to {again[name]!r}" if name in again else "trained" if name in changing else "fixed"
        found[name] = f"of shape {list(tensor.shape)} ({str(tensor.dtype).removeprefix('torch.')}, {kind})"
    return found


def _check_memory(models: Sequence[nn.Module]) -> None:
    regions = {}
    for m, model in enumerate(models):
        frozen = dict(model.named_parameters()).keys() - trained(model).keys()
        for name, tensor in (trained(model) | fixed(model)).items():
            if tensor.is_meta or tensor.layout is not torch.strided or not tensor.numel():
                continue
            reach = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
            start = tensor.data_ptr()
            region = (str(tensor.device), start, start + (reach + 1) * tensor.itemsize)
            who = () if name in frozen else (m, name)  # nothing writes to frozen parameters: members may share one
            regions[*region, *who] = f"{name!r} of models[{m}]"
    for a, b in pairwise(sorted(regions)):
        if a[0] == b[0] and b[1] < a[2]:
            raise ValueError(
                f"{regions[a]} and {regions[b]} share memory, which tensors of an ensemble cannot; nearest: a "
                "copy.deepcopy per member, and within a model one parameter under both names"
            )


def inside(value: Any) -> Iterator[Any]:
    """Yield what nested lists, tuples and dicts hold."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from inside(part)
    else:
        yield value


def _escaped(value: Any) -> bool:
    """Whether this is a tensor of a vectorised pass that is over."""
    if not isinstance(value, Tensor):
        return False
    try:
        value.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return True
    return False


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
