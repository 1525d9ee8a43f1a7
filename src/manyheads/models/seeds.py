"""Randomness by name: a draw depends on its seed and on what it is for, never on what was drawn before it."""

from __future__ import annotations

import hashlib
import json
from numbers import Integral
from typing import TypeVar

import torch
from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def generator(seed: int, *names: str) -> torch.Generator:
    """Return a fresh CPU generator that belongs to ``seed`` and ``names`` alone.

    Draw from it on the CPU and move the result to its device afterwards: every device then gets the same numbers.

    >>> import torch
    >>> x = torch.randn(3, generator=generator(0, "tokens", "train"))

    Parameters
    ----------
    seed
        Any integer.
    names
        What the draw is for, from the general to the particular: ``"initialise", "q_proj.weight"``.

    Raises
    ------
    ValueError
        When the seed is not an integer or a name not a string.

    Notes
    -----
    The key is the SHA-256 of both, of which torch's CPU generator takes 32 bits. Among n different keys two may thus
    coincide, with probability about n^2 / 2^33: one in 8,600 for a thousand.
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise ValueError(f"seed={seed!r} must be an integer, for instance 0")
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"names={names!r} must be strings, for instance {tuple(map(str, names))!r}")
    key = hashlib.sha256(json.dumps([int(seed), *names]).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(key[:4], "big"))


@torch.no_grad()
def initialise(module: Module, seed: int) -> Module:
    """Draw every parameter of ``module`` anew, each by its own name, and return the module.

    The last part of a parameter's name decides what it becomes:

    - it ends in ``bias``: zeros;
    - it starts with ``gain``, or is a ``weight`` of one dimension, as in a normalisation: ones;
    - anything else: independent normal entries of variance 1 / fan_in, where fan_in is the number of inputs that feed
      one output (all dimensions but the first; of a vector, its length).

    Numbers are drawn in float64 on the CPU and rounded to the parameter's type, so device and type do not change them,
    and renaming, adding or reordering other parameters does not either. A parameter that two modules share is drawn
    once, under its first name.

    Raises
    ------
    ValueError
        When a parameter is on the meta device: it has no numbers to draw. Nothing is changed then.
    """
    parameters = dict(module.named_parameters())
    for name, parameter in parameters.items():
        if parameter.is_meta:
            raise ValueError(
                f"parameter {name!r} is on the meta device and holds no numbers; call module.to_empty(device=...) first"
            )
    for name, parameter in parameters.items():
        last = name.rpartition(".")[-1]
        if last.endswith("bias"):
            parameter.zero_()
        elif last.startswith("gain") or (last == "weight" and parameter.ndim == 1):
            parameter.fill_(1.0)
        else:
            fan_in = parameter.shape[1:].numel() if parameter.ndim > 1 else parameter.numel()
            draw = torch.randn(parameter.shape, generator=generator(seed, "initialise", name), dtype=torch.float64)
            parameter.copy_(draw / max(1, fan_in) ** 0.5)
    return module
