"""What a layout of heads costs: parameters, matrix products, softmax work, cache, and the rank it can reach."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from manyheads.models import AttentionSpec, EncoderSpec
from manyheads.models.checks import positive_int
from manyheads.models.feedforward import GATED
from manyheads.names import unknown

DTYPES = {
    name: getattr(torch, name)
    for name in ("float64", "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int8")
}


@dataclass(frozen=True)
class Cost:
    """Cost of one attention layer for one sequence of T tokens (``context``). Made by :func:`cost`."""

    parameters: int
    """Learned numbers: matrices, biases and gains."""
    matmul_flops: int
    """Floating-point operations of the matrix products of a forward pass; a multiply-add counts as 2."""
    softmax_elements: int
    """Exponentials of a forward pass, H T^2. FLOP counters leave them out, and they do grow with H."""
    kv_cache_bytes: int
    """Bytes kept per sequence to generate the next token: keys and values, or the latent vectors."""
    score_rank: int
    """The rank that no head's T x T matrix of inner products of queries and keys can exceed."""
    n_patterns: int
    """Attention patterns (T x T weight matrices) computed at once: one per head."""
    parameters_by_part: dict[str, int] = field(hash=False)
    """``parameters`` split over q, k, v, out (with their biases), gain; with a latent also down."""
    flops_by_part: dict[str, int] = field(hash=False)
    """``matmul_flops`` split over q, k, v, scores, mix, out; with a latent also down."""


def cost(spec: AttentionSpec, context: int, dtype: str | torch.dtype = "float32") -> Cost:
    r"""Count what :class:`manyheads.models.Attention` of this spec costs for one sequence of ``context`` tokens.

    With E model width, H heads, G groups, D and C head dimensions, T tokens, and b = 1 with biases, else 0:

    ============  ==========================  ==============
    part          parameters                  matrix FLOPs
    ============  ==========================  ==============
    q             H D (E + b)                 2 T E H D
    k             G D (E + b)                 2 T E G D
    v             G C (E + b)                 2 T E G C
    scores                                    2 T^2 H D
    mix                                       2 T^2 H C
    out           (H C + b) E                 2 T E H C
    gain          (H + G) D with qk_gain
    ============  ==========================  ==============

    With a latent of size c, k and v read c numbers instead of E, and one more part, down, has c E parameters and
    2 T E c FLOPs. The T x T products are counted in full, under a causal mask too, as torch's FLOP counter does.
    Left out of the FLOPs: everything that is not a matrix product (softmax, normalisation, rotations, biases).

    The cache holds G (D + C) T numbers, with a latent c T, each of the size of ``dtype``.

    The rank of the matrix :math:`(\langle q_i, k_j \rangle)_{ij}` is at most

    .. math:: \min(T,\; r + \min(D - r,\; w + b)), \qquad w = E \text{ (with a latent: } \min(E, c))

    with r the dimensions that rope turns, 0 without it: min(D, E, T) in the plain case. Queries and keys are affine
    functions of w numbers, which bounds the dimensions that do not turn; a turned pair differs from position to
    position and is bounded by its own size only. Generic weights and tokens attain the bound.

    Parameters
    ----------
    spec
        The layer.
    context
        Number of tokens T.
    dtype
        Type of the cached numbers: a torch dtype or its name.

    Raises
    ------
    ValueError
        For a context that is not a positive integer, or an unknown dtype.
    """
    context = positive_int("context", context)
    n_bytes = _dtype(dtype).itemsize
    n_q, n_k, n_v = spec.n_heads * spec.d_head, spec.n_kv_heads * spec.d_head, spec.n_kv_heads * spec.d_value
    n_mixed, bias = spec.n_heads * spec.d_value, int(spec.bias)
    kv_width = spec.latent_dim or spec.d_model  # what keys and values are read from

    weights = {
        "q": spec.d_model * n_q,
        "k": kv_width * n_k,
        "v": kv_width * n_v,
        "out": n_mixed * spec.d_model,
    }
    biases = {"q": n_q, "k": n_k, "v": n_v, "out": spec.d_model}
    down = {"down": spec.d_model * spec.latent_dim} if spec.latent_dim else {}
    gain = {"gain": n_q + n_k} if spec.qk_gain else {}

    parameters = {part: weights[part] + bias * biases[part] for part in weights} | down | gain
    flops = {part: 2 * context * size for part, size in (weights | down).items()}
    flops |= {"scores": 2 * context**2 * n_q, "mix": 2 * context**2 * n_mixed}

    turned = spec.rotary_dim or 0
    return Cost(
        parameters=sum(parameters.values()),
        matmul_flops=sum(flops.values()),
        softmax_elements=spec.n_heads * context**2,
        kv_cache_bytes=(spec.latent_dim or n_k + n_v) * context * n_bytes,
        score_rank=min(context, turned + min(spec.d_head - turned, min(spec.d_model, kv_width) + bias)),
        n_patterns=spec.n_heads,
        parameters_by_part=parameters,
        flops_by_part=flops,
    )


def decoder_parameters(n_layers: int, d_model: int, vocab_size: int, d_ff: int | None = None) -> int:
    """Count the matrices of a GPT-style decoder: ``L (4 E^2 + 2 E d_ff) + V E``.

    Per layer four E x E matrices of attention (whatever the number of heads, as long as D = C = E / H) and two of the
    feed-forward network, of width ``d_ff``, 4 E unless given; then one V x E embedding, shared with the output.
    Not counted: normalisations, biases, position embeddings.

    >>> decoder_parameters(12, 768, 50_304)
    123568128
    """
    n_layers, d_model = positive_int("n_layers", n_layers), positive_int("d_model", d_model)
    d_ff = 4 * d_model if d_ff is None else positive_int("d_ff", d_ff)
    return n_layers * (4 * d_model**2 + 2 * d_model * d_ff) + positive_int("vocab_size", vocab_size) * d_model


def encoder_parameters(spec: EncoderSpec) -> int:
    r"""Count the learned numbers of :class:`manyheads.models.Encoder`.

    With d and o dimensions of token and answer, E model width, F hidden width, L layers, n = 1 with ``norm``, else 0,
    and m = 2 matrices into the hidden layer for a gated feed-forward network, else 1:

    .. math:: \underbrace{P}_{\text{embedding}} + \underbrace{E}_{\text{class token}} + \sum_{l=1}^{L} \bigl(
        A_l + m F (E + 1) + (F + 1) E + 4 n E \bigr) + 2 n E + (E + 1)\, o

    where P is (d + 1) E, or (d + 1) F + (F + 1) E for ``"mlp"``, and :math:`A_l` is the attention layer's count in
    :func:`cost`.

    >>> encoder_parameters(EncoderSpec(d_in=1, d_out=1, d_model=16, heads=(1,)))
    3217
    """
    width, hidden = spec.d_model, spec.d_ff
    into = (2 if spec.ffn in GATED else 1) * hidden * (width + 1)
    back = (hidden + 1) * width
    embedding = (spec.d_in + 1) * width if spec.embedding == "linear" else (spec.d_in + 1) * hidden + back
    attention = sum(cost(spec.attention(layer), 1).parameters for layer in range(spec.n_layers))
    norms = 2 * width * (2 * spec.n_layers + 1) if spec.norm else 0
    return embedding + width + attention + spec.n_layers * (into + back) + norms + (width + 1) * spec.d_out


def _dtype(dtype: str | torch.dtype) -> torch.dtype:
    if isinstance(dtype, torch.dtype):
        return dtype
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(unknown("dtype", dtype, DTYPES))
    return DTYPES[dtype]
