"""Checkpoints: one safetensors file with tensors and, in its header, JSON. Nothing in it can run code."""

from __future__ import annotations

import hashlib
import json
import tempfile
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


class UnsavedCheckpoint(OSError):
    """A checkpoint that could not be written, and in ``result`` what training would have returned."""

    result: Any = None


def save(path: str | Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> Path:
    """Write tensors and JSON values to one file, whole or not at all. Tensors come back on the CPU."""
    return write_whole(path, _content(tensors, values))


def rehearse(path: str | Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Find out whether :func:`save` would work, and leave nothing behind.

    Raises
    ------
    ValueError
        When the file could not be written there, or could not hold this.
    """
    path = Path(path)
    try:
        content = _content(tensors, values)
    except (AttributeError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise ValueError(f"a checkpoint holds tensors alone, and not the whole state of this model: {error}") from error
    try:
        if path.exists() and not path.is_file():
            raise FileExistsError("it is there and no ordinary file")
        folder = next(folder for folder in path.absolute().parents if folder.exists())
        with tempfile.NamedTemporaryFile(prefix=f".{path.name}.", suffix=".tmp", dir=folder) as beside:
            beside.write(content)
    except (OSError, ValueError) as error:  # a ValueError for a null character
        what = getattr(error, "strerror", None) or error
        raise ValueError(
            f"checkpoint={str(path)!r} cannot be written: {what}; name a file in a folder that can be written"
        ) from error


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


def unsaved(path: str | Path, error: OSError, result: Any) -> UnsavedCheckpoint:
    """Return the error for a checkpoint that could not be written, with the result of the run."""
    failure = UnsavedCheckpoint(
        f"cannot write checkpoint {str(path)!r}: {error.strerror or error}. The models hold what was trained until "
        "then, and the attribute result of this error what the call would have returned; make room, or name another "
        "file in TrainConfig(checkpoint=...)"
    )
    failure.result = result
    return failure


def _content(tensors: dict[str, Tensor], values: dict[str, Any]) -> bytes:
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name!r} is of type {type(tensor).__name__}")
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    header = {"format": FORMAT, "values": json.dumps(values), "digest": _digest(tensors, values)}
    return to_bytes(tensors, header)


def _digest(tensors: dict[str, Tensor], values: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
