"""The empty page that a construction writes on."""

from __future__ import annotations

import math

import torch
from torch.types import Device

from manyheads.models import Encoder, EncoderSpec

ROUNDING = 2.0**-53
"""Relative error of one operation in float64."""


@torch.no_grad()
def blank_encoder(spec: EncoderSpec, device: Device = None) -> Encoder:
    """Return an ordinary encoder in float64 with every parameter 0: it answers 0 whatever it reads."""
    encoder = Encoder(spec, device=device, dtype=torch.float64)
    for parameter in encoder.parameters():
        parameter.zero_()
    return encoder


def refuse_below_rounding(tolerance: float, rounding: float, share: float) -> None:
    """Raise a ``ValueError`` when rounding may take more than its ``share`` of the tolerance."""
    if rounding > share * tolerance:
        # A coarser network rounds less, so this tolerance is always enough.
        enough = rounding / share
        way_out = f"nearest: {enough:.1e}" if enough < math.inf else "no tolerance is enough"
        raise ValueError(
            f"tolerance={tolerance} is finer than float64 can promise here (rounding up to {rounding:.1e}); {way_out}"
        )
