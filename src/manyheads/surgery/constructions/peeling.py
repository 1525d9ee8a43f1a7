r"""Depth instead of width: k layers, one head each, find the k-th largest of T numbers by peeling off the maxima.

Numbers :math:`x_1, \ldots, x_T` in [0, 1], with distinct values :math:`v_1 > v_2 > \ldots`, the first k - 1 gaps
:math:`v_l - v_{l+1}` being at least ``gap``. The answer is :math:`v_k`: ties count once. The stream holds a score
(at first the number itself), a constant 1, and the maximum that each layer finds: E = k + 2.

**Layer l < k.** Every token asks with the constant, so all read the same :math:`m_l`, and
:math:`v_l - e \le m_l \le v_l` with :math:`e = W(T/e)/\beta < gap/2`. The feed-forward network lowers a score s by
:math:`r(m_l - s)`, where r is 2 up to 0, 0 from gap/2 on, and a straight line between: two hidden units, slopes of
order 1/gap. Tokens at :math:`v_l` have :math:`m_l - s \le 0` and drop by 2, to -1 or below. All others have
:math:`m_l - s \ge gap - e \ge gap/2` and stay as they are. So the largest score left is :math:`v_{l+1}`, and errors do
not add up from layer to layer.

**Layer k** reads :math:`v_k` to within :math:`W(T/e)/\beta_k`. The class token, a key like any other, is parked at -1,
where it is never the largest.

**No contradiction.** Yu, Jiang, Bao & Li 2026 (arXiv 2605.17930, claim I4) show that one layer pays
:math:`\varepsilon^{-(k-1)/n}` for the k-th largest *in the worst case*. Here there are k layers, and inputs with small
gaps, which a worst case may choose, are left out: two values closer than gap/2 are peeled together, wholly or in part,
and the answer can be far off. The condition is rare in long sequences: see :func:`gap_probability`.

Ours (claim X8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.types import Device

from manyheads.models import Encoder, EncoderSpec
from manyheads.models.checks import above_zero, at_least_zero, positive_int
from manyheads.surgery.constructions.blank import ROUNDING, blank_encoder, refuse_below_rounding
from manyheads.surgery.constructions.piecewise import ramp
from manyheads.theory.costs import encoder_parameters
from manyheads.theory.softmax import retrieval_error_bound, sharpness_for

DROP = 2.0
"""How far a peeled score falls: from [0, 1] to [-2, -1]."""
PARKED = -1.0
"""The class token's own score, below every number."""
SLACK = 0.9
"""Share of gap/2 that the read maxima may miss; what is left keeps rounding away from the ramp."""
ROUNDING_SHARE = 0.025
SCORE, ONE, FIRST_MAXIMUM = 0, 1, 2  # places in the stream


@dataclass(frozen=True)
class PeelingBudget:
    """Every free number of the construction, and what error each part may cause. Made by :func:`peeling_budget`."""

    spec: EncoderSpec
    """Sizes of the encoder: k layers."""
    betas: tuple[float, ...]
    """Sharpness of every layer."""
    gap: float
    """Smallest of the first k - 1 gaps that the promise covers."""
    errors: dict[str, float]
    """Largest error by part: retrieval (of the last layer) and rounding."""

    @property
    def error_bound(self) -> float:
        """Largest error of the answer: the sum of the parts, at most the tolerance."""
        return sum(self.errors.values())

    @property
    def parameters(self) -> int:
        """Learned numbers of the encoder, zeros included."""
        return encoder_parameters(self.spec)


def peeling_network(k: int, n_tokens: int, gap: float, tolerance: float, device: Device = None) -> Encoder:
    """Build an encoder that answers the k-th largest distinct value to within ``tolerance``.

    Parameters
    ----------
    k
        Which value: 1 is the maximum.
    n_tokens
        Largest number of tokens T the promise is for, at least k.
    gap
        Smallest distance between neighbours among the k largest distinct values, at most 1 / (k - 1). Not used at k=1.
    tolerance
        Largest error of the answer.
    device
        Where the encoder lives.

    Returns
    -------
    Encoder
        float64, ``[B, T, 1]`` in [0, 1] to ``[B, 1]``. Slots 2, …, k + 1 of its stream hold the maxima found.

    Raises
    ------
    ValueError
        When ``k`` or ``n_tokens`` is not a positive integer or T < k, when no input has such gaps, or when
        ``tolerance`` is not above 0 or finer than float64 can promise.
    """
    return pour(peeling_budget(k, n_tokens, gap, tolerance), device)


def peeling_budget(k: int, n_tokens: int, gap: float, tolerance: float) -> PeelingBudget:
    """Choose the sharpness of every layer of :func:`peeling_network`; same arguments and errors.

    ``rounding`` is a generous first-order estimate; ``retrieval`` is a bound.
    """
    k, n_tokens = _sizes(k, n_tokens)
    tolerance, gap, widest = above_zero("tolerance", tolerance), above_zero("gap", gap), 1 / max(1, k - 1)
    if gap > widest:
        raise ValueError(f"gap={gap} must be at most {widest:g} for k={k} values in [0, 1]; nearest: {widest:g}")
    rounding = 64 * ROUNDING * (n_tokens + (k - 1) * DROP / gap)
    refuse_below_rounding(tolerance, rounding, ROUNDING_SHARE)
    last = sharpness_for(n_tokens + 1, (1 - ROUNDING_SHARE) * tolerance)
    return PeelingBudget(
        spec=EncoderSpec(d_in=1, d_out=1, d_model=k + 2, heads=(1,) * k, d_head=1, d_ff=2, ffn="relu"),
        betas=(sharpness_for(n_tokens + 1, SLACK * gap / 2),) * (k - 1) + (last,),
        gap=gap,
        errors={"retrieval": retrieval_error_bound(n_tokens + 1, last), "rounding": rounding},
    )


def gap_probability(k: int, n_tokens: int, gap: float) -> float:
    r"""Probability that T independent uniform numbers satisfy the gap condition.

    The T + 1 spacings that T uniform points leave in [0, 1] are exchangeable, and k - 1 of them all exceed ``gap`` with
    probability :math:`(1 - (k-1)\,gap)^T` (0 when that is negative).

    Raises
    ------
    ValueError
        When ``k`` or ``n_tokens`` is not a positive integer or T < k, or ``gap`` is negative or not finite.
    """
    k, n_tokens = _sizes(k, n_tokens)
    taken = (k - 1) * at_least_zero("gap", gap)
    return math.exp(n_tokens * math.log1p(-taken)) if taken < 1 else 0.0


def _sizes(k: int, n_tokens: int) -> tuple[int, int]:
    k, n_tokens = positive_int("k", k), positive_int("n_tokens", n_tokens)
    if n_tokens < k:
        raise ValueError(f"n_tokens={n_tokens} numbers have no {k}-th largest; nearest n_tokens: {k}")
    return k, n_tokens


@torch.no_grad()
def pour(budget: PeelingBudget, device: Device = None) -> Encoder:
    """Write a budget into an encoder. Change the budget first (``dataclasses.replace``) to plant a fault."""
    network = blank_encoder(budget.spec, device)
    network.embedding.weight[SCORE, 0] = 1
    network.embedding.bias[ONE] = 1
    network.class_token[ONE] = 1
    network.class_token[SCORE] = PARKED

    last = budget.spec.n_layers - 1
    for index, (layer, beta) in enumerate(zip(network.layers, budget.betas, strict=True)):
        maximum = FIRST_MAXIMUM + index
        layer.attention.q_proj.weight[0, ONE] = beta
        layer.attention.k_proj.weight[0, SCORE] = 1
        layer.attention.v_proj.weight[0, SCORE] = 1
        layer.attention.out_proj.weight[maximum, 0] = 1
        if index < last:
            peel = ramp(DROP, budget.gap / 2, network.class_token.device)
            layer.feedforward.up_proj.weight[:, maximum] = 1
            layer.feedforward.up_proj.weight[:, SCORE] = -1
            layer.feedforward.up_proj.bias[:] = -peel.knots
            layer.feedforward.down_proj.weight[SCORE] = -peel.changes
            layer.feedforward.down_proj.bias[SCORE] = -peel.offset
    network.head.weight[0, FIRST_MAXIMUM + last] = 1
    return network
