"""What training asks of a model, its samples and its loss, and how it says what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

Batch = Any
"""What ``batch`` returns and ``loss`` receives: a tensor, or a tuple of them."""


def each(function: Callable[[Tensor], Tensor], batch: Batch) -> Batch:
    """Apply a function to every tensor of a batch; lists become tuples."""
    if isinstance(batch, Tensor):
        return function(batch)
    if isinstance(batch, (tuple, list)):
        return tuple(each(function, part) for part in batch)
    raise ValueError(f"batch must return a tensor or a tuple of tensors, not {type(batch).__name__}")


def describe(batch: Batch, skip: int = 0) -> str:
    """Name types and shapes, after the first ``skip`` dimensions, of a batch: ``(float32 [8, 4, 1], int64 [8])``."""
    if isinstance(batch, Tensor):
        return f"{_name(batch.dtype)} {list(batch.shape[skip:])}"
    return f"({', '.join(describe(part, skip) for part in batch)})"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@contextmanager
def number_types_named(batch: Batch, parameters: torch.dtype, skip: int = 0) -> Iterator[None]:
    """Turn torch's errors about types of numbers that do not fit into one that names them, as :func:`describe` does."""
    try:
        yield
    except RuntimeError as error:
        if not re.search(r"dtype|scalar type|Input type|not implemented for '", str(error)):
            raise
        raise ValueError(
            f"samples {describe(batch, skip)} do not fit parameters of type {_name(parameters)}: {error}; nearest: "
            "floating-point samples, which are cast to the type of the parameters, and whole numbers only where the "
            "model or the loss looks something up"
        ) from error


def scalar(value: Any, name: str) -> Tensor:
    """Return what a loss returned if it is one real number."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} must return a scalar tensor, not {type(value).__name__}")
    if value.ndim or value.is_complex():
        raise ValueError(f"{name} must return a real scalar, not {describe(value)}; nearest: its mean()")
    return value


def differentiable(value: Tensor) -> Tensor:
    """Return a loss if gradients can flow back from it."""
    if not value.requires_grad:
        raise ValueError("loss does not depend on a parameter to train; call the model in it, and nothing detached")
    return value


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    """Name the parameters that training changes."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def trainable(model: Any, device: torch.device, name: str = "model") -> None:
    """Raise a ``ValueError`` for no module, nothing to train, and a tensor without numbers to put on the device."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"{name} must be a torch.nn.Module, not {type(model).__name__}")
    for part, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if tensor.is_meta and device.type != "meta":
            raise ValueError(
                f"{part!r} of {name} is on the meta device and holds no numbers; call module.to_empty(device=...) first"
            )
    if not trained(model):
        n_frozen = len(list(model.parameters()))
        raise ValueError(f"{name} has no parameter to train: {n_frozen} in all, every one with requires_grad=False")
