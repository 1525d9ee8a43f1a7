"""Checkpoints: one safetensors file with tensors and, in its header, JSON. Nothing in it can run code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from manyheads.files import write_whole

FORMAT = "manyheads-checkpoint-1"


class DamagedCheckpoint(ValueError):
    """A checkpoint that cannot be used: which file, what is wrong, how to go on."""


def save(path: str | Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> Path:
    """Write tensors and JSON values to one file, whole or not at all. Tensors come back on the CPU."""
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    header = {"format": FORMAT, "values": json.dumps(values), "digest": _digest(tensors, values)}
    return write_whole(path, to_bytes(tensors, header))


def load(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save` wrote.

    Raises
    ------
    DamagedCheckpoint
        When the file is cut off, altered, or not a checkpoint.
    """
    try:
        with safe_open(str(path), "pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no dict
    except (SafetensorError, OSError, ValueError) as error:
        raise damaged(path, f"it is no readable safetensors file ({error})") from error
    if header.get("format") != FORMAT:
        raise damaged(path, f"its format is {header.get('format')!r}, not {FORMAT!r}")
    try:
        values = json.loads(header["values"])
    except (KeyError, ValueError) as error:
        raise damaged(path, "its header is not readable") from error
    if header.get("digest") != _digest(tensors, values):
        raise damaged(path, "its content is not what was written (the digest differs)")
    return tensors, values


def damaged(path: str | Path, what: str) -> DamagedCheckpoint:
    """Return the error for a checkpoint that cannot be used."""
    return DamagedCheckpoint(
        f"cannot go on from checkpoint {str(path)!r}: {what}. Delete it to start from the beginning, or name another "
        "file in TrainConfig(checkpoint=...)"
    )


def _digest(tensors: dict[str, Tensor], values: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
