"""What a module is besides the numbers in its tensors: classes, options, hooks, the order of its parts.

Values are compared as ``copy`` takes them apart. Two modules that refer to parts of their own are alike when they refer
to the same parts, so that no cycle and no back reference stands in the way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import Tensor, nn

ATOMS = (type(None), bool, int, float, complex, str, bytes, torch.device, torch.dtype)
NOT_COMPARED = ("__dict__", "__weakref__", "__slotnames__")  # of a class: bookkeeping of Python's


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()
"""Stands for an attribute that is not there."""


class Difference(NamedTuple):
    """Where two modules differ, what either has there, and whether it is only a ``cached_property``."""

    path: str
    first: Any
    second: Any
    cached: bool = False


def slots(module: nn.Module) -> dict[str, Tensor]:
    """Name every place of a tensor in a module: parameters first, then buffers. A tied tensor has several places."""
    parts, once = list(module.named_modules()), {"recurse": False, "remove_duplicate": False}
    found: dict[str, Tensor] = {}
    for path, part in parts:
        found.update(part.named_parameters(path, **once))
    for path, part in parts:
        found.update(part.named_buffers(path, **once))
    return found


def tied(module: nn.Module) -> dict[str, str]:
    """Give every place of a tensor that has been named before the first name of that tensor."""
    first: dict[int, str] = {}
    names = {name: first.setdefault(id(tensor), name) for name, tensor in slots(module).items()}
    return {name: original for name, original in names.items() if name != original}


def differences(first: nn.Module, second: nn.Module) -> Iterator[Difference]:
    """Find what two modules do not share, numbers in parameters and buffers and ``training`` apart."""
    return _Comparison(first, second).compare("", first, second)


class _Comparison:
    def __init__(self, first: nn.Module, second: nn.Module):
        self.own = [_own(module) for module in (first, second)]
        self.met: dict[tuple[int, int], tuple] = {}  # also keeps what it met, so that no id is used twice

    def compare(self, path: str, first: Any, second: Any) -> Iterator[Difference]:
        if first is second or (id(first), id(second)) in self.met:
            return
        names = [own.get(id(value)) for own, value in zip(self.own, (first, second), strict=True)]
        if names[0] != names[1]:
            yield Difference(path, first, second)
        if names[0] != names[1] or names[0] not in (None, path) or (names[0] and isinstance(first, Tensor)):
            return  # what a module owns is compared in its own place
        self.met[id(first), id(second)] = first, second
        (kind, parts), (other_kind, other_parts) = _apart(first), _apart(second)
        if kind != other_kind:
            yield Difference(path, first, second)
            return
        for name in parts | other_parts:
            here = (path + name).lstrip(".")
            one, other = parts.get(name, NOTHING), other_parts.get(name, NOTHING)
            if one is NOTHING or other is NOTHING:
                yield Difference(here, one, other, _is_cached(first, name))
            else:
                yield from self.compare(here, one, other)


def _own(module: nn.Module) -> dict[int, str]:
    parts = {id(part): path for path, part in module.named_modules()}
    return parts | {id(tensor): f"tensor {name}" for name, tensor in reversed(slots(module).items())}


def _is_cached(owner: Any, name: str) -> bool:
    return isinstance(getattr(type(owner), name.removeprefix("."), None), cached_property)


def _apart(value: Any) -> tuple[Any, dict[str, Any]]:
    """Take a value apart: what must be equal as it is, and named parts that are compared in turn."""
    if isinstance(value, ATOMS):
        return (type(value), repr(value)), {}  # as text, nan equals nan
    if isinstance(value, Tensor):
        return _bits(value), {}
    if isinstance(value, (set, frozenset)):
        return (type(value), value), {}
    if isinstance(value, dict):
        return (type(value), list(value)), {f"[{key!r}]": part for key, part in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return (type(value), len(value)), {f"[{index}]": part for index, part in enumerate(value)}
    if isinstance(value, nn.Module):
        return list(value._modules), _module(value)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        captured = dict(zip(value.__code__.co_freevars, cells, strict=True))
        parts = captured | {"__defaults__": value.__defaults__, "__kwdefaults__": value.__kwdefaults__}
    elif isinstance(value, MethodType):
        parts = {"__func__": value.__func__, "__self__": value.__self__}
    elif isinstance(value, ref):
        parts = {"()": value()}
    elif isinstance(value, property):
        parts = {"fget": value.fget, "fset": value.fset, "fdel": value.fdel}
    elif isinstance(value, type):
        parts = {name: part for name, part in vars(value).items() if name not in NOT_COMPARED}
        return (value.__module__, value.__qualname__, value.__bases__), _dotted(parts)
    else:
        return _reduced(value)
    return (type(value), getattr(value, "__code__", None)), _dotted(parts)


def _module(module: nn.Module) -> dict[str, Any]:
    state = {**vars(module)}
    state.pop("training", None)
    tensors = {**state.pop("_parameters"), **state.pop("_buffers")}
    for name, hooks in state.items():
        if "_hooks" in name and isinstance(hooks, dict):
            state[name] = list(hooks.values())  # their keys are numbers of a counter
    return _dotted({"__class__": type(module), **state.pop("_modules"), **tensors, **state})


def _reduced(value: Any) -> tuple[Any, dict[str, Any]]:
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:  # it cannot be copied, so it is like itself alone
        return id(value), {}
    if isinstance(reduced, str):
        return reduced, {}
    make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    made = {"": (make, arguments, *map(list, (items or (), pairs or ())))}
    if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
        state = {**(state[0] or {}), **state[1]}  # of a class with __slots__
    return type(value).__qualname__, made | (_dotted(state) if isinstance(state, dict) else {".state": state})


def _dotted(parts: dict[str, Any]) -> dict[str, Any]:
    return {f".{name}": part for name, part in parts.items()}


def _bits(tensor: Tensor) -> tuple:
    key = (type(tensor), tensor.dtype, tensor.shape, tensor.device)
    if tensor.is_meta:
        return key
    try:
        plain = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
        return (*key, plain.numpy().tobytes())
    except (NotImplementedError, RuntimeError):  # a layout without a flat form, or a tensor that escaped from vmap
        return (*key, id(tensor))
