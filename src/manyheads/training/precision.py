"""Which number format to train in: a decision that depends on what the device can do, and on nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from manyheads.names import unknown

DTYPES = ("auto", "float32", "float64", "bfloat16", "float16")
BFLOAT16_SINCE = (8, 0)  # CUDA compute capabilities: A100 and later have it, a T4 (7, 5) only emulates it
FLOAT16_SINCE = (7, 0)


@dataclass(frozen=True)
class Precision:
    """Type of the parameters; type of products where that differs; whether losses are scaled against underflow."""

    parameters: torch.dtype
    products: torch.dtype | None = None
    scaled: bool = False


def decide(dtype: str, device_type: str, capability: tuple[int, int] | None = None) -> Precision:
    """Choose number formats from what the device can do.

    ``"auto"`` is bfloat16 products on CUDA devices that have them, float16 products with loss scaling on older ones
    with tensor cores, float32 elsewhere. Parameters stay float32 with both.

    Parameters
    ----------
    dtype
        One of ``DTYPES``.
    device_type
        ``"cpu"``, ``"cuda"``, …
    capability
        Of a CUDA device: what ``torch.cuda.get_device_capability`` returns.

    Raises
    ------
    ValueError
        For an unknown dtype, and for one that the device does not have: the message names what it has.
    """
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(unknown("dtype", dtype, DTYPES))
    native = {
        "bfloat16": device_type == "cuda" and capability is not None and tuple(capability) >= BFLOAT16_SINCE,
        "float16": device_type == "cuda" and capability is not None and tuple(capability) >= FLOAT16_SINCE,
    }
    if dtype == "auto":
        dtype = next((name for name in ("bfloat16", "float16") if native[name]), "float32")
    if not native.get(dtype, True):
        where = device_type if capability is None else f"{device_type} of capability {capability[0]}.{capability[1]}"
        nearest = "float16" if native["float16"] else "float32"
        raise ValueError(f"dtype={dtype!r} is not native on {where}; nearest: {nearest!r}, or 'auto'")
    if dtype in native:
        return Precision(torch.float32, getattr(torch, dtype), scaled=dtype == "float16")
    return Precision(getattr(torch, dtype))


def on(device: torch.device, dtype: str) -> Precision:
    """:func:`decide` for a device of this machine; a ``ValueError`` if torch cannot use it here."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device={str(device)!r} cannot be used here: {reason}; nearest: 'cpu'") from error
    capability = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
    return decide(dtype, device.type, capability)


def check(model: torch.nn.Module, precision: Precision) -> None:
    """Raise a ``ValueError`` if a real or complex parameter of ``model`` is not of the type to train in."""
    for name, parameter in model.named_parameters():
        if (parameter.is_floating_point() or parameter.is_complex()) and parameter.dtype != precision.parameters:
            have, want = (str(dtype).removeprefix("torch.") for dtype in (parameter.dtype, precision.parameters))
            raise ValueError(f"parameter {name!r} is {have}, but dtype trains {want}; nearest: model.to(torch.{want})")
