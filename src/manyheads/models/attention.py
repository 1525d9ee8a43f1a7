"""Multi-head attention: one layer, a fast path and a readable one that give the same numbers.

Letters in names such as ``q_bhtd`` are dimensions: b batch, t tokens, e model width E, h heads H, g key/value groups G,
d query and key dimension D, c value dimension C (of a latent: its size).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.types import Device

from manyheads.models import positions
from manyheads.models.spec import AttentionSpec


class Attention(nn.Module):
    r"""Multi-head attention with everything :class:`~manyheads.models.AttentionSpec` can ask for.

    For token i and head h of group g(h), with :math:`q_i = W_Q^h x_i`, :math:`k_j = W_K^g x_j`, :math:`v_j = W_V^g x_j`
    (or, from a latent :math:`z_j = W_{down} x_j`, :math:`k_j = W_{UK}^h z_j`, :math:`v_j = W_{UV}^h z_j`):

    .. math:: a^h_{ij} = \operatorname{softmax}_j \left( \frac{\langle q_i, k_j \rangle}{\sqrt D} - m_h |i-j| \right),
        \qquad y_i = b_O + \sum_h W_O^h \sum_j a^h_{ij} v_j

    over the positions j that i may attend to. :math:`m_h` is 0 without alibi; every projection but the one to a latent
    has a bias if the spec says so. Queries and keys are normalised first (:math:`q / \sqrt{\operatorname{mean}(q^2) +
    \epsilon}`, times a gain), then turned by rope.

    Parameters
    ----------
    spec
        Sizes and options.
    device, dtype
        Where the parameters live and their type, as in torch's own modules; ``"meta"`` works.

    Attributes
    ----------
    q_proj, out_proj
        ``nn.Linear`` E to H D, and H C to E. Rows of ``q_proj.weight`` (columns of ``out_proj.weight``) are head after
        head.
    k_proj, v_proj
        ``nn.Linear`` E to G D, and E to G C. Query head h reads group ``h // (H / G)``.
    kv_down, k_up, v_up
        With ``latent_dim`` c, in their place: ``nn.Linear`` E to c, c to H D, c to H C.
    gain_q, gain_k
        With ``qk_gain``: ``[H, D]`` and ``[G, D]``, 1 at the start.

    Notes
    -----
    The fast path asks two things of its inputs that the readable one (``reference=True``) does not:

    - *Finite tokens*, also where nobody may look. Torch's kernels multiply what is forbidden by a weight of 0, and 0
      times NaN is NaN. The readable path leaves it out of the sum: a NaN reaches the tokens that may attend to it.
    - *First derivatives, backwards*. Torch's kernels have no derivatives of a second order (``hessian``, a gradient
      penalty) and none in forward mode (``jvp``, ``jacfwd``). The readable path has all of them.

    Weights start as torch starts any ``nn.Linear``, uniform on :math:`\pm 1/\sqrt{fan_{in}}` and drawn from the global
    generator. For a start that no change of code can move, call :func:`manyheads.models.seeds.initialise`.

    Source: Vaswani et al. 2017, arXiv 1706.03762; those of the options: see :class:`~manyheads.models.AttentionSpec`.
    """

    spec: AttentionSpec
    q_proj: nn.Linear
    k_proj: nn.Linear
    v_proj: nn.Linear
    kv_down: nn.Linear
    k_up: nn.Linear
    v_up: nn.Linear
    out_proj: nn.Linear
    gain_q: nn.Parameter
    gain_k: nn.Parameter

    def __init__(self, spec: AttentionSpec, device: Device = None, dtype: torch.dtype | None = None):
        super().__init__()
        self.spec = spec
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        linear: Callable[..., nn.Linear] = partial(nn.Linear, bias=spec.bias, **place)
        n_q, n_k, n_v = spec.n_heads * spec.d_head, spec.n_kv_heads * spec.d_head, spec.n_kv_heads * spec.d_value

        self.q_proj = linear(spec.d_model, n_q)
        if spec.latent_dim is None:
            self.k_proj = linear(spec.d_model, n_k)
            self.v_proj = linear(spec.d_model, n_v)
        else:
            self.kv_down = nn.Linear(spec.d_model, spec.latent_dim, bias=False, **place)
            self.k_up = linear(spec.latent_dim, n_k)
            self.v_up = linear(spec.latent_dim, n_v)
        self.out_proj = linear(spec.n_heads * spec.d_value, spec.d_model)
        if spec.qk_gain:
            self.gain_q = nn.Parameter(torch.ones(spec.n_heads, spec.d_head, **place))
            self.gain_k = nn.Parameter(torch.ones(spec.n_kv_heads, spec.d_head, **place))

    def forward(
        self, x: Tensor, mask: Tensor | None = None, return_weights: bool = False, reference: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every token of ``x`` read the tokens it may attend to.

        Parameters
        ----------
        x
            ``[B, T, E]``.
        mask
            Boolean, ``[T, T]`` or ``[B, T, T]``. **True = may attend**: ``mask[i, j]`` lets token i read token j. This
            is the opposite of ``attn_mask`` in ``torch.nn.MultiheadAttention``, where True forbids. A causal layer
            allows what both the mask and causality allow.
        return_weights
            Return the attention weights too, in every mode. They cost B H T T numbers of memory.
        reference
            Take the readable path, :func:`~manyheads.models.attention.mix_reference`, instead of the fast one,
            :func:`~manyheads.models.attention.mix_fast`. Asking for weights takes it too. The two agree to rounding;
            what only the readable one can do is said in the notes of the class.

        Returns
        -------
        Tensor or (Tensor, Tensor)
            y ``[B, T, E]``, or y and the weights ``[B, H, T, T]``. A weight that is not allowed is exactly 0, the
            others of its row sum to 1. A token that may attend to nothing has weights 0 and reads 0: its y is the
            output bias, its gradients are finite.

        Raises
        ------
        ValueError
            For a wrong shape of ``x``, or a wrong shape, type or device of ``mask``.
        """
        self._check_inputs(x, mask)
        n_tokens = x.shape[1]
        q_bhtd, k_bgtd, v_bgtc = self.project(x)
        bias_htt = None
        if self.spec.position == "alibi":
            bias_htt = positions.alibi_bias(self.spec.n_heads, n_tokens, x.device, q_bhtd.dtype)

        weights_bhtt = None
        if reference or return_weights:
            read_bhtc, weights_bhtt = mix_reference(q_bhtd, k_bgtd, v_bgtc, bias_htt, mask, self.spec.causal)
        else:
            read_bhtc = mix_fast(q_bhtd, k_bgtd, v_bgtc, bias_htt, mask, self.spec.causal)
        y_bte = self.out_proj(read_bhtc.transpose(1, 2).flatten(2))
        return y_bte if weights_bhtt is None or not return_weights else (y_bte, weights_bhtt)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries ``[B, H, T, D]``, keys ``[B, G, T, D]`` and values ``[B, G, T, C]``.

        Queries and keys are normalised and turned where the spec says so: their inner products over the square root
        of D are the scores (before alibi).
        """
        spec = self.spec
        if spec.latent_dim is None:
            k_btn, v_btn = self.k_proj(x), self.v_proj(x)
        else:
            latent_btc = self.kv_down(x)
            k_btn, v_btn = self.k_up(latent_btc), self.v_up(latent_btc)
        q_bhtd = _split_heads(self.q_proj(x), spec.n_heads)
        k_bgtd = _split_heads(k_btn, spec.n_kv_heads)
        v_bgtc = _split_heads(v_btn, spec.n_kv_heads)

        if spec.qk_norm:
            q_bhtd = F.rms_norm(q_bhtd, (spec.d_head,), eps=spec.qk_eps)
            k_bgtd = F.rms_norm(k_bgtd, (spec.d_head,), eps=spec.qk_eps)
        if spec.qk_gain:
            q_bhtd = q_bhtd * self.gain_q[:, None, :]
            k_bgtd = k_bgtd * self.gain_k[:, None, :]
        if spec.position == "rope":
            q_bhtd = positions.rotate(q_bhtd, spec.rotary_dim)  # type: ignore[arg-type] # rope has one
            k_bgtd = positions.rotate(k_bgtd, spec.rotary_dim)  # type: ignore[arg-type]
        return q_bhtd, k_bgtd, v_bgtc

    def extra_repr(self) -> str:
        """Show the spec when the module is printed."""
        return str(self.spec)

    def _check_inputs(self, x: Tensor, mask: Tensor | None) -> None:
        if x.ndim != 3 or x.shape[-1] != self.spec.d_model:
            raise ValueError(f"x must have shape [B, T, d_model={self.spec.d_model}], not {list(x.shape)}")
        if mask is None:
            return
        batch, n_tokens, _ = x.shape
        if mask.dtype != torch.bool:
            raise ValueError(f"mask must be torch.bool with True = may attend, not {mask.dtype}")
        if mask.shape not in ((n_tokens, n_tokens), (batch, n_tokens, n_tokens)):
            raise ValueError(
                f"mask must have shape [T, T] = {[n_tokens] * 2} or [B, T, T] = {[batch, n_tokens, n_tokens]}, "
                f"not {list(mask.shape)}"
            )
        if mask.device != x.device:
            raise ValueError(f"mask is on {mask.device}, x on {x.device}; nearest: mask.to(x.device)")


def mix_reference(
    q_bhtd: Tensor,
    k_bgtd: Tensor,
    v_bgtc: Tensor,
    bias_htt: Tensor | None = None,
    mask: Tensor | None = None,
    causal: bool = False,
) -> tuple[Tensor, Tensor]:
    """Softmax attention as it is written down: what the heads read ``[B, H, T, C]``, and with which weights.

    ``bias_htt`` is added to the scores; ``mask`` is ``[T, T]`` or ``[B, T, T]``, True = may attend. As in torch's
    kernels, numbers of 16 bits are multiplied and added up in float32, under autocast too: a score may well lie beyond
    the largest float16, 65,504. Under a mask, a value that is not finite is NaN to who may attend to it, and nothing to
    the others.
    """
    heads_per_group = q_bhtd.shape[1] // k_bgtd.shape[1]
    wide = torch.promote_types(q_bhtd.dtype, torch.float32)
    scaled_bhtd = q_bhtd.to(wide) / math.sqrt(q_bhtd.shape[-1])  # before the product, which may overflow
    k_bhtd, v_bhtc = (part.to(wide).repeat_interleave(heads_per_group, dim=1) for part in (k_bgtd, v_bgtc))

    with _no_autocast(q_bhtd.device):
        scores_bhtt = scaled_bhtd @ k_bhtd.mT
        if bias_htt is not None:
            scores_bhtt = scores_bhtt + bias_htt
        allowed = may_attend(mask, causal, q_bhtd.shape[-2], q_bhtd.device)
        if allowed is None:
            weights_bhtt = scores_bhtt.softmax(-1)
            read_bhtc = weights_bhtt @ v_bhtc
        else:
            # -inf, and not a large negative number, makes a weight exactly 0 at any scale of the scores. A row of
            # nothing but -inf would give 0/0, so a row with nothing allowed attends to all, until it is set to 0.
            nothing = ~allowed.any(-1, keepdim=True)
            weights_bhtt = scores_bhtt.masked_fill(~(allowed | nothing), -math.inf).softmax(-1)
            weights_bhtt = weights_bhtt.masked_fill(~allowed, 0.0)
            # 0 times NaN is NaN, so values that are not finite stay out of the product: NaN for who may read them.
            lost_bht = ~v_bhtc.isfinite().all(-1)
            read_bhtc = weights_bhtt @ v_bhtc.masked_fill(lost_bht[..., None], 0.0)
            reads_lost = (allowed & lost_bht[:, :, None]).any(-1, keepdim=True)
            read_bhtc = read_bhtc.masked_fill(reads_lost, math.nan)
    return read_bhtc.to(v_bgtc.dtype), weights_bhtt.to(q_bhtd.dtype)


def mix_fast(
    q_bhtd: Tensor,
    k_bgtd: Tensor,
    v_bgtc: Tensor,
    bias_htt: Tensor | None = None,
    mask: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    """What the heads read, by torch's fused kernel: the numbers of ``mix_reference``, and no memory for the weights.

    Inputs must be finite, and derivatives are first ones in backward mode: see the notes of
    :class:`~manyheads.models.Attention`.
    """
    grouped = bool(q_bhtd.shape[1] != k_bgtd.shape[1])  # while torch.jit traces, sizes are tensors
    fused = partial(F.scaled_dot_product_attention, q_bhtd, k_bgtd, v_bgtc, enable_gqa=grouped)
    if mask is None and bias_htt is None:
        return fused(is_causal=causal)
    allowed = may_attend(mask, causal, q_bhtd.shape[-2], q_bhtd.device)
    if allowed is None:
        return fused(attn_mask=bias_htt[None])  # type: ignore[index] # no mask, so a bias
    # Kernels differ in what they make of a row without an allowed position, so none of them gets to see one.
    nothing = ~allowed.any(-1, keepdim=True)
    attend = allowed | nothing
    if bias_htt is not None:
        attend = bias_htt.masked_fill(~attend, -math.inf)
    return fused(attn_mask=attend).masked_fill(nothing, 0.0)


def may_attend(mask: Tensor | None, causal: bool, n_tokens: int, device: Device) -> Tensor | None:
    """Combine mask and causality: boolean ``[1 or B, 1, T, T]``, True = may attend; ``None`` when all is allowed."""
    allowed = None
    if causal:
        allowed = torch.ones(1, 1, n_tokens, n_tokens, dtype=torch.bool, device=device).tril()
    if mask is not None:
        mask_b1tt = mask[None, None] if mask.ndim == 2 else mask[:, None]
        allowed = mask_b1tt if allowed is None else allowed & mask_b1tt
    return allowed


def _no_autocast(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Leave types as they are, which autocast would not; the meta device has no autocast to leave."""
    known = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if known else contextlib.nullcontext()


def _split_heads(x_btn: Tensor, n_heads: int) -> Tensor:
    return x_btn.unflatten(-1, (n_heads, -1)).transpose(1, 2)
