r"""Two layers, one head each, that find the largest pairwise score: weights of an ordinary encoder, set by hand.

The target is :math:`m = \max_{s,t} x_s^\top A x_t` over T tokens in :math:`[-1,1]^d`. The stream of width E = 2d + 4
holds a token x, the vector y it retrieves, a constant 1, a flag that only the class token carries, a score and the
answer (:func:`slots`).

1. **Layer 1, attention.** Token t asks with :math:`\beta_1 A x_t`, key s is :math:`x_s`: it retrieves y, about the
   token :math:`x_s` with the largest :math:`x_s^\top A x_t`. The class token is a key like any other, and with x = 0
   it would win whenever all scores are negative. One more coordinate of the head lowers its score.
2. **Layer 1, feed-forward.** It multiplies: :math:`z_t = \sum_i y_i (A x_t)_i`. With ReLU,
   :math:`u w = \frac{1}{4}\big((u+w)^2 - (u-w)^2\big)` and piecewise linear squares; a bilinear network is exact.
3. **Layer 2, attention.** The class token retrieves :math:`\max_t z_t`. Its own score was set below all others.

**Error.** Let S be the sum of all :math:`|A_{ij}|`, so that no score exceeds it in size.

- *retrieval_1*: the score is linear in y, so :math:`y^\top A x_t` is the softmax average of T scores and misses their
  maximum by at most :math:`W((T-1)/e)/\beta_1`;
- *suppression*: the class token keeps a weight of at most :math:`1/(1+e^\gamma)`, which costs that times S;
- *product*: with n segments on [-2, 2] each square is too large by 0 to :math:`4/n^2`, so a product with
  :math:`|(A x)_i| \le a_i = \sum_j |A_{ij}|` is wrong by at most :math:`a_i/n_i^2`;
- *retrieval_2*: a maximum among T + 1 keys, at most :math:`W(T/e)/\beta_2`.

A maximum changes by no more than its entries, so the errors add up. Sharpness costs no parameters and segments do, so
the product gets most of the tolerance; :math:`\sum_i n_i` is smallest for :math:`n_i \propto a_i^{1/3}`, and the width
:math:`2 \sum_i n_i` grows like :math:`\varepsilon^{-1/2}` whatever T.

Ours (claim X7). That two layers need only polynomially many parameters is the theorem of Yu, Jiang, Bao & Li 2026
(arXiv 2605.17930), who state the order 1/eps; their construction may differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.types import Device

from manyheads.models import Encoder, EncoderSpec, FeedForward
from manyheads.models.checks import above_zero, positive_int
from manyheads.names import unknown
from manyheads.surgery.constructions.blank import ROUNDING, blank_encoder, refuse_below_rounding
from manyheads.surgery.constructions.piecewise import square
from manyheads.theory.costs import encoder_parameters
from manyheads.theory.softmax import gap_error_bound, gap_for, retrieval_error_bound, sharpness_for

KINDS = ("relu", "bilinear")
SHARES = {
    "relu": {"product": 0.75, "retrieval": 0.1, "suppression": 0.025, "rounding": 0.025},
    "bilinear": {"product": 0.0, "retrieval": 0.475, "suppression": 0.025, "rounding": 0.025},
}
"""How the tolerance is divided. The share of ``retrieval`` is used twice, once a layer."""


@dataclass(frozen=True)
class MaxPairBudget:
    """Every free number of the construction, and what error each part may cause. Made by :func:`max_pair_budget`."""

    spec: EncoderSpec
    """Sizes of the encoder."""
    beta_1: float
    """Sharpness of layer 1, in 1 / (unit of the scores)."""
    beta_2: float
    """Sharpness of layer 2."""
    suppression: float
    """What is taken off the class token's score as a key in layer 1, in nats: beta_1 S + gamma."""
    parked: float
    """The class token's own value as a score, below all others."""
    segments: tuple[int, ...]
    """Segments n_i of the two squares of each coordinate, 0 where a row of A is 0. Empty with a bilinear network."""
    errors: dict[str, float]
    """Largest error by part: retrieval_1, suppression, product, retrieval_2, rounding; unit of the scores."""

    @property
    def error_bound(self) -> float:
        """Largest error of the answer: the sum of the parts, at most the tolerance."""
        return sum(self.errors.values())

    @property
    def d_ff(self) -> int:
        """Hidden width of the feed-forward networks."""
        return self.spec.d_ff

    @property
    def parameters(self) -> int:
        """Learned numbers of the encoder, zeros included."""
        return encoder_parameters(self.spec)


def max_pair_network(A: Tensor, n_tokens: int, tolerance: float, ffn: str = "relu", device: Device = None) -> Encoder:
    r"""Build an encoder that answers :math:`\max_{s,t} x_s^\top A x_t` to within ``tolerance``.

    Parameters
    ----------
    A
        Matrix ``[d, d]`` of the score, any finite numbers.
    n_tokens
        Largest number of tokens T the promise is for; shorter sequences are fine.
    tolerance
        Largest error, in the unit of the scores.
    ffn
        ``"relu"``: width of order tolerance^(-1/2). ``"bilinear"``: width d.
    device
        Where the encoder lives; that of ``A`` if not given.

    Returns
    -------
    Encoder
        float64, ``[B, T, d]`` in :math:`[-1,1]` to ``[B, 1]``. :func:`max_pair_budget` itemises its error.

    Raises
    ------
    ValueError
        When ``A`` is not a finite square matrix, ``n_tokens`` not a positive integer, ``ffn`` unknown, or ``tolerance``
        not above 0 or finer than float64 can promise.
    """
    A = _matrix(A)
    return pour(A, max_pair_budget(A, n_tokens, tolerance, ffn), device)


def max_pair_budget(A: Tensor, n_tokens: int, tolerance: float, ffn: str = "relu") -> MaxPairBudget:
    """Divide ``tolerance`` among the parts of :func:`max_pair_network`; same arguments and errors.

    ``rounding`` is a generous first-order estimate of the rounding of all sums; the other parts are bounds.
    """
    A = _matrix(A)
    n_tokens, tolerance = positive_int("n_tokens", n_tokens), above_zero("tolerance", tolerance)
    if not isinstance(ffn, str) or ffn not in KINDS:
        raise ValueError(unknown("ffn", ffn, KINDS))
    share = {part: part_of * tolerance for part, part_of in SHARES[ffn].items()}
    rows = A.abs().sum(1).tolist()  # a_i
    largest = sum(rows)  # S
    segments = _segments(rows, share["product"]) if ffn == "relu" else ()
    product = sum(a / n**2 for a, n in zip(rows, segments, strict=True) if n) if ffn == "relu" else 0.0

    d = len(rows)
    spec = EncoderSpec(
        d_in=d,
        d_out=1,
        d_model=2 * d + 4,
        heads=(1, 1),
        d_head=d + 1,
        d_value=d,
        d_ff=max(1, 2 * sum(segments)) if ffn == "relu" else d,
        ffn=ffn,
    )
    # Standard bounds for sums of n terms: n units of rounding times the sum of sizes, at most 16 S in the products.
    rounding = 64 * ROUNDING * (n_tokens + spec.d_ff + spec.d_model) * (largest + product)
    refuse_below_rounding(tolerance, rounding, SHARES[ffn]["rounding"])

    beta_1 = sharpness_for(n_tokens, share["retrieval"], 2 * largest)
    gamma = gap_for(2, share["suppression"], largest)
    parked = -(largest + product)
    beta_2 = sharpness_for(n_tokens + 1, share["retrieval"], -2 * parked)
    return MaxPairBudget(
        spec=spec,
        beta_1=beta_1,
        beta_2=beta_2,
        suppression=beta_1 * largest + gamma,
        parked=parked,
        segments=segments,
        errors={
            "retrieval_1": retrieval_error_bound(n_tokens, beta_1, 2 * largest),
            "suppression": gap_error_bound(2, gamma, largest),
            "product": product,
            "retrieval_2": retrieval_error_bound(n_tokens + 1, beta_2, -2 * parked),
            "rounding": rounding,
        },
    )


def slots(d: int) -> dict[str, slice]:
    """Where the stream keeps what: ``token`` and ``retrieved`` (d each), ``one``, ``flag``, ``score``, ``answer``."""
    d = positive_int("d", d)
    places, start = {}, 0
    for name, size in (("token", d), ("retrieved", d), ("one", 1), ("flag", 1), ("score", 1), ("answer", 1)):
        places[name] = slice(start, start + size)
        start += size
    return places


@torch.no_grad()
def pour(A: Tensor, budget: MaxPairBudget, device: Device = None) -> Encoder:
    """Write a budget into an encoder. Change the budget first (``dataclasses.replace``) to plant a fault."""
    A = _matrix(A)
    network = blank_encoder(budget.spec, device or A.device)
    A = A.to(network.class_token.device)
    d, at = budget.spec.d_in, slots(budget.spec.d_in)
    root = math.sqrt(budget.spec.attention(0).d_head)  # attention divides scores by it
    identity = torch.eye(d, dtype=A.dtype, device=A.device)
    first, second = network.layers

    network.embedding.weight[at["token"]] = identity
    network.embedding.bias[at["one"]] = 1
    network.class_token[at["one"]] = 1
    network.class_token[at["flag"]] = 1
    network.class_token[at["score"]] = budget.parked

    first.attention.q_proj.weight[:d, at["token"]] = budget.beta_1 * root * A
    first.attention.k_proj.weight[:d, at["token"]] = identity
    first.attention.q_proj.weight[d, at["one"]] = -budget.suppression * root
    first.attention.k_proj.weight[d, at["flag"]] = 1
    first.attention.v_proj.weight[:, at["token"]] = identity
    first.attention.out_proj.weight[at["retrieved"]] = identity
    _multiply(first.feedforward, A, budget.segments, at)

    second.attention.q_proj.weight[0, at["one"]] = budget.beta_2 * root
    second.attention.k_proj.weight[0, at["score"]] = 1
    second.attention.v_proj.weight[0, at["score"]] = 1
    second.attention.out_proj.weight[at["answer"], 0] = 1
    network.head.weight[0, at["answer"]] = 1
    return network


def _multiply(feedforward: FeedForward, A: Tensor, segments: tuple[int, ...], at: dict[str, slice]) -> None:
    """Let a feed-forward network add the inner product of ``retrieved`` and A ``token`` to ``score``."""
    d = len(A)
    identity = torch.eye(d, dtype=A.dtype, device=A.device)
    if feedforward.kind == "bilinear":
        feedforward.up_proj.weight[:, at["retrieved"]] = identity
        feedforward.gate_proj.weight[:, at["token"]] = A
        feedforward.down_proj.weight[at["score"]] = 1
        return
    start = 0
    for i, n in enumerate(segments):
        if n == 0:
            continue
        size = A[i].abs().sum()
        piece = square(2.0, n, A.device)
        for sign in (1, -1):  # (u + w)^2 and (u - w)^2, both with w = (A x)_i / a_i in [-1, 1]; the offsets cancel
            units = slice(start, start + n)
            feedforward.up_proj.weight[units, at["retrieved"]] = identity[i]
            feedforward.up_proj.weight[units, at["token"]] = sign * A[i] / size
            feedforward.up_proj.bias[units] = -piece.knots
            feedforward.down_proj.weight[at["score"], units] = sign * size / 4 * piece.changes
            start += n


def _segments(rows: list[float], tolerance: float) -> tuple[int, ...]:
    """Fewest segments with sum of a_i / n_i^2 at most the tolerance: n_i proportional to a_i^(1/3), rounded up.

    At most 2^50 each, where rounding has long been larger than any such tolerance.
    """
    scale = math.sqrt(sum(a ** (1 / 3) for a in rows) / tolerance)
    return tuple(math.ceil(min(scale * a ** (1 / 3), 2.0**50)) if a else 0 for a in rows)


def _matrix(A: Tensor) -> Tensor:
    given = torch.as_tensor(A)
    if given.is_complex():
        raise ValueError(f"A has type {given.dtype}; expected real numbers")
    if given.is_meta:
        raise ValueError("A is on the meta device and holds no numbers; nearest: a matrix that has some, device='meta'")
    A = torch.as_tensor(A, dtype=torch.float64).detach()
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.numel() == 0:
        raise ValueError(f"A has shape {tuple(A.shape)}; expected a square matrix [d, d]")
    if not bool((64 * A.abs().sum()).isfinite()):
        raise ValueError("A must hold finite numbers only, whose sizes add up to 1e306 at most")
    return A
