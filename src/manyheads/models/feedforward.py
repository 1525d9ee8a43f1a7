"""The network that every token passes through alone: two matrices and a nonlinearity, or three and a product."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.types import Device

from manyheads.models.checks import positive_int
from manyheads.names import unknown

PLAIN: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu}
GATED: dict[str, Callable[[Tensor], Tensor]] = {"bilinear": lambda x: x, "swiglu": F.silu}
KINDS = (*PLAIN, *GATED)
"""The kinds of feed-forward network: two with a nonlinearity, two with a product of two linear maps."""


class FeedForward(nn.Module):
    r"""A feed-forward network with one hidden layer, applied to the last dimension.

    .. math:: y = W_2\, \sigma(W_1 x + b_1) + b_2 \qquad \text{or} \qquad
        y = W_2\, \bigl( (W_1 x + b_1) \odot \sigma(W_3 x + b_3) \bigr) + b_2

    on the left for ``gelu`` and ``relu``; on the right for ``bilinear``, where :math:`\sigma` is the identity, and
    ``swiglu``, where :math:`\sigma(u) = u / (1 + e^{-u})`.

    Parameters
    ----------
    d_in, d_hidden, d_out
        Widths. A gated network has ``d_hidden`` products, and half as many parameters again as a plain one.
    kind
        One of ``KINDS``.
    device, dtype
        As in torch's own modules; ``"meta"`` works.

    Attributes
    ----------
    up_proj, gate_proj, down_proj
        ``nn.Linear`` for :math:`W_1, W_3, W_2`, all with biases; ``gate_proj`` only in the gated kinds.

    Raises
    ------
    ValueError
        For a width that is not a positive integer or an unknown kind.

    References
    ----------
    Gelu, Hendrycks and Gimpel 2016 (arXiv 1606.08415); gated kinds, Shazeer 2020 (arXiv 2002.05202), there
    without biases.
    """

    up_proj: nn.Linear
    gate_proj: nn.Linear
    down_proj: nn.Linear

    def __init__(
        self,
        d_in: int,
        d_hidden: int,
        d_out: int,
        kind: str = "gelu",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(unknown("kind", kind, KINDS))
        d_in, d_hidden, d_out = (
            positive_int(name, value) for name, value in (("d_in", d_in), ("d_hidden", d_hidden), ("d_out", d_out))
        )
        self.kind = kind
        linear = partial(nn.Linear, device=device, dtype=dtype)
        self.up_proj = linear(d_in, d_hidden)
        if kind in GATED:
            self.gate_proj = linear(d_in, d_hidden)
        self.down_proj = linear(d_hidden, d_out)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``x`` ``[..., d_in]`` to ``[..., d_out]``."""
        if self.kind in GATED:
            return self.down_proj(self.up_proj(x) * GATED[self.kind](self.gate_proj(x)))
        return self.down_proj(PLAIN[self.kind](self.up_proj(x)))

    def extra_repr(self) -> str:
        """Show the kind when the module is printed."""
        return f"kind={self.kind!r}"
