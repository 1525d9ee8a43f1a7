r"""The map from an input to the class token's state after one attention layer: how much it keeps, how smooth it is.

For a one-layer encoder the class token asks the same question of every input, so head h reads

.. math:: o_h = \sum_s p_s \nu_h(x_s), \qquad p = \operatorname{softmax}_s(\kappa_h(x_s)) ,

where the score :math:`\kappa_h` and the value :math:`\nu_h` of a token depend on that token alone (and on its position,
with alibi, by a constant). The state is :math:`c + \sum_h o_h`; the class token is one of the keys, with a constant
score and value.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap

from manyheads.models import Encoder
from manyheads.models.checks import at_least_zero
from manyheads.theory.ranks import rank_tolerance

GELU_SLOPE = 1.13
"""gelu' lies in [-0.129, 1.129]."""
GELU_CURVATURE = 2 / math.sqrt(2 * math.pi)
"""gelu''(u) = (2 - u^2) times the standard normal density: largest in size at u = 0."""


def encoder_state(encoder: Encoder, reduced: bool = False) -> Callable[[Tensor], Tensor]:
    r"""Return the map from tokens ``[T, d_in]`` to the class token's state ``[E]`` after the attention layer.

    What follows, the feed-forward network and the output, is a decoder of this state.

    With ``reduced``, the state is given by its coordinates in the space that differences of states cannot leave: what
    the heads' output matrices reach, H C dimensions at most. With a linear embedding :math:`x \mapsto W x + b` a head
    with :math:`M = W_O W_V` reads :math:`M W \bar x + M b + p_c M (c - b)` from the mean token :math:`\bar x` and the
    class token's weight :math:`p_c`, so H (d + 1) dimensions are enough whatever E. The basis is orthonormal: distances
    of states, and Lipschitz constants, are the same.

    Raises
    ------
    ValueError
        When the encoder has more than one layer, and with ``reduced`` when it is on the meta device.
    """
    _one_layer(encoder)

    def state(x: Tensor) -> Tensor:
        # The readable path of attention, which torch.func can differentiate in both modes and more than once.
        return encoder.layers[0].mix(encoder.embed(x[None]), reference=True)[0, -1]

    if not reduced:
        return state
    basis = _reach(encoder)
    return lambda x: state(x) @ basis


@torch.no_grad()
def _reach(encoder: Encoder) -> Tensor:
    """Orthonormal basis ``[E, n]`` of the space that differences of states cannot leave."""
    _with_numbers(encoder)
    columns = encoder.layers[0].attention.out_proj.weight
    embedding = encoder.embedding
    if isinstance(embedding, nn.Linear) and not encoder.spec.norm:
        read = torch.cat([embedding.weight, (encoder.class_token - embedding.bias)[:, None]], dim=1)
        columns = torch.cat([value @ read for value in _values(encoder)], dim=1)
    left, singular, _ = torch.linalg.svd(columns, full_matrices=False)
    return left[:, singular > rank_tolerance(columns, least=1e-12) * singular[0]]


def _values(encoder: Encoder) -> Tensor:
    """What each head adds to the state per unit of stream: matrices M = W_O W_V, ``[H, E, E]``."""
    attention = encoder.layers[0].attention
    n_heads, d_value = attention.spec.n_heads, attention.spec.d_value
    out_hec = attention.out_proj.weight.view(-1, n_heads, d_value).transpose(0, 1)
    return out_hec @ attention.v_proj.weight.view(n_heads, d_value, -1)


@torch.no_grad()
def state_rank(attention_map: Callable[[Tensor], Tensor], x: Tensor, relative_tolerance: float | None = None) -> Tensor:
    """Rank of the derivative of a map at inputs ``x`` ``[..., T, d]``: integers ``[...]``.

    Below T d, the map loses T d - rank directions at that input. Singular values below ``relative_tolerance`` times the
    largest count as zero. Left out, it is 1e-9, but no less than what rounding can do, the longer side of the
    derivative times the spacing of its numbers: float32 loses what is a million times weaker than the strongest.

    Raises
    ------
    ValueError
        For ``x`` of fewer than two dimensions, a derivative that is not finite, or a negative ``relative_tolerance``.
    """
    if x.ndim < 2:
        raise ValueError(f"x has shape {list(x.shape)}; expected [..., T, d]")
    inputs = x.reshape(-1, *x.shape[-2:])
    jacobians = vmap(jacrev(lambda one: attention_map(one).flatten()))(inputs).flatten(2)
    if not jacobians.is_meta and not bool(jacobians.isfinite().all()):
        raise ValueError("the derivative of attention_map is not finite at one of the inputs")
    if relative_tolerance is None:
        relative_tolerance = rank_tolerance(jacobians)
    relative_tolerance = at_least_zero("relative_tolerance", relative_tolerance)
    singular = torch.linalg.svdvals(jacobians)
    return (singular > relative_tolerance * singular[:, :1]).sum(-1).reshape(x.shape[:-2])


@torch.no_grad()
def jacobian_lipschitz(encoder: Encoder, lower: float, upper: float) -> float:
    r"""Bound the Lipschitz constant of the derivative of :func:`encoder_state` over the box [lower, upper].

    Along a line in direction :math:`\delta`, a softmax average has second derivative

    .. math:: \mathrm{E}\,\nu'' + 2\,\mathrm{Cov}(\kappa', \nu') + \mathrm{Cov}(\kappa'', \nu)
        + \mathrm{E}\,(\kappa' - \mathrm{E}\kappa')^2 (\nu - \mathrm{E}\nu)

    with expectations under p. Let :math:`\kappa_1, \kappa_2, \nu_1, \nu_2` bound the first and second derivatives of
    score and value, and R the distance of any two values. A variance is a quadratic form with matrix
    :math:`\operatorname{diag}(p) - p p^\top`, whose norm is at most 1/2, so the sum is at most

    .. math:: \nu_2 + \kappa_1 \nu_1 + R\,(\kappa_2 + \kappa_1^2 / 2)

    times :math:`|\delta|^2`, whatever T. Heads add up. A symmetric form is as large as it is on the diagonal, so this
    bounds the whole second derivative.

    Norms: spectral for derivatives, Euclidean for inputs ``[T, d_in]`` and states.

    Raises
    ------
    ValueError
        For more than one layer, for layer normalisation or rope, to which the argument does not extend as it is, for
        an encoder on the meta device, and for a box that is empty or has no end.
    """
    _one_layer(encoder)
    _with_numbers(encoder)
    if not -math.inf < lower < upper < math.inf:
        raise ValueError(f"lower={lower} must be below upper={upper}, both finite")
    spec, attention = encoder.spec, encoder.layers[0].attention
    if spec.norm or spec.position == "rope":
        raise ValueError(
            f"norm={spec.norm}, position={spec.position!r}: the bound needs norm=False and position 'none' or 'alibi'"
        )
    n_heads, d_head = attention.spec.n_heads, attention.spec.d_head
    query = attention.q_proj(encoder.class_token).view(n_heads, d_head) / math.sqrt(d_head)
    keys = attention.k_proj.weight.view(n_heads, d_head, -1)
    scores_he = torch.einsum("hd,hde->he", query, keys)  # score per unit of stream

    centre = torch.full((1, spec.d_in), (lower + upper) / 2, dtype=query.dtype, device=query.device)
    half_diagonal = (upper - lower) / 2 * math.sqrt(spec.d_in)
    from_class = encoder.embedding(centre)[0] - encoder.class_token
    total = 0.0
    for score, value in zip(scores_he, _values(encoder), strict=True):
        score_1, score_2 = _derivatives(encoder, score[None])
        value_1, value_2 = _derivatives(encoder, value)
        spread = max(2 * value_1 * half_diagonal, float((value @ from_class).norm()) + value_1 * half_diagonal)
        total += value_2 + score_1 * value_1 + spread * (score_2 + score_1 * score_1 / 2)
    return total


def _derivatives(encoder: Encoder, readout: Tensor) -> tuple[float, float]:
    """Bounds on the first and second derivative of ``readout`` times the embedding of a token."""
    if encoder.spec.embedding == "linear":
        return _norm(readout @ encoder.embedding.weight), 0.0
    up, down = encoder.embedding.up_proj.weight, readout @ encoder.embedding.down_proj.weight
    # With U = up and a unit vector w: first derivative U' diag(gelu') (w down), second U' diag(gelu'' w down) U.
    curvature = up.mT @ (down.norm(dim=0)[:, None] * up)
    return GELU_SLOPE * _norm(down) * _norm(up), GELU_CURVATURE * _norm(curvature)


def _norm(matrix: Tensor) -> float:
    return torch.linalg.matrix_norm(matrix, 2).item()


def _one_layer(encoder: Encoder) -> None:
    if encoder.spec.n_layers != 1:
        raise ValueError(f"the encoder has {encoder.spec.n_layers} layers; the state after one is meant: heads=(H,)")


def _with_numbers(encoder: Encoder) -> None:
    if encoder.class_token.is_meta:
        raise ValueError("the encoder is on the meta device and holds no numbers to measure")
