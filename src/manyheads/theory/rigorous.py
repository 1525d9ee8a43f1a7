r"""A collision of one attention layer, proved: the certificate of :mod:`.collisions` without "up to rounding".

**Theorem.** Let :math:`f : \mathbb{R}^n \to \mathbb{R}^n` be differentiable, R a matrix and :math:`r > 0` with

.. math:: |R f(0)|_\infty \le r / 2, \qquad \|1 - R f'(z)\|_\infty \le 1/2 \quad\text{for all}\quad |z|_\infty \le r .

Then f has a zero with :math:`|z|_\infty \le r`, and only one.

*Proof.* :math:`N(z) = z - R f(z)` halves distances in this cube, for its derivative is :math:`1 - R f'(z)`, and so
:math:`|N(z)| \le |N(0)| + |z| / 2 \le r`: N maps the cube into itself. By Banach it has one fixed point there, where
:math:`R f(z) = 0`. R is invertible, because :math:`R f'` is that close to 1.

Here f is the difference of the states of two inputs of T tokens, as a function of n of their 2 T d coordinates: those
that pivoting QR picks from the Jacobian, among those with room to the boundary of the box. R may be any matrix; we
take the inverse of a Jacobian that float64 computes. The two conditions and the targets are computed in
:mod:`.intervals`, which hold the exact numbers; the Jacobian is enclosed over the whole cube.

**Which map.** The function of real numbers that the weights define, with the exact softmax and gelu; not a program that
rounds it. Two states are equal when every head reads the same: the same mean value or, where that is shorter, the same
mean token and weight of the class token (see :func:`.states.encoder_state`).

**What this proves.** Two inputs in the box have exactly the same state, and their targets differ by at least the gap
returned. So every decoder of this state, continuous or not, errs by at least half the gap on one of them. **What it
does not.** It speaks of one layer with these weights, and of the largest error. Where no proof is found, nothing
follows.

Source: Krawczyk 1969, "Newton-Algorithmen zur Bestimmung von Nullstellen mit Fehlerschranken", whose operator this is,
in the maximum norm. Background: Tucker 2011, "Validated Numerics".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr
from torch import Tensor

from manyheads.models import Encoder
from manyheads.models.checks import above_zero
from manyheads.theory import states
from manyheads.theory.intervals import Interval, concatenate, exact, exp, normal_cdf, normal_density, root


@dataclass(frozen=True)
class Proof:
    """An exact collision near a pair of inputs. Made by :func:`prove`."""

    radius: float
    """No coordinate of the two colliding inputs is further than this from that of the pair."""
    target_gap_at_least: float
    """Their targets differ by at least this much."""

    @property
    def error_at_least(self) -> float:
        """Largest error of every decoder of this layer's state, over the box, at least: half the gap."""
        return self.target_gap_at_least / 2


@np.errstate(all="ignore")  # what overflows is no number, and a condition on it fails
def prove(
    encoder: Encoder,
    x: Tensor,
    x_other: Tensor,
    matrix: Tensor,
    *,
    lower: float = -1.0,
    upper: float = 1.0,
    within: float = 1e-6,
) -> Proof | None:
    r"""Prove that a pair of inputs lies next to an exact collision of states, and how far apart its targets are.

    The state is that of :func:`.states.encoder_state`, the target :math:`\max_{s,t} x(s)^\top A\, x(t)`.

    Parameters
    ----------
    encoder
        One layer, without positions and normalisation. Its weights are taken as exact numbers.
    x, x_other
        The pair, ``[T, d_in]`` each, for instance that of a :class:`.collisions.Certificate`.
    matrix
        A, ``[d_in, d_in]``.
    lower, upper
        The box of all inputs. The colliding ones lie in it too.
    within
        How far in any coordinate the collision may be.

    Returns
    -------
    Proof or None
        ``None`` where the theorem does not apply: this layer does not confuse the pair, nor any that is so close; or
        its Jacobian is too nearly singular there; or too few coordinates have room to move.

    Raises
    ------
    ValueError
        For an encoder with several layers, positions, normalisation, or no numbers; for shapes that do not fit each
        other; for numbers that are not finite, or outside the box.
    """
    within = above_zero("within", within)
    reads = _reads(encoder)
    pair, matrix = _checked(encoder, x, x_other, matrix, lower, upper)
    states_, slopes = reads(exact(pair))
    middle = (slopes.low + slopes.high) / 2
    room = np.flatnonzero(np.minimum(pair - lower, upper - pair) > 2 * within)  # twice: a difference is rounded
    if len(room) < len(middle) or not np.isfinite(middle).all():
        return None
    chosen = room[qr(middle[:, room], mode="r", pivoting=True)[1][: len(middle)]]
    try:
        inverse = exact(np.linalg.inv(middle[:, chosen]))
    except np.linalg.LinAlgError:
        return None

    radius = 2 * (inverse @ (states_[0] - states_[1])[:, None]).magnitude().max()
    moved = np.zeros(pair.size)
    moved[chosen] = radius
    cube = exact(pair) + Interval(-moved, moved).arrange(lambda ends: ends.reshape(pair.shape))
    slopes = reads(cube)[1].arrange(lambda ends: ends[:, chosen])
    defect = (np.eye(len(middle)) - inverse @ slopes).magnitude()
    if not (radius <= within and exact(defect).sum(1).high.max() <= 0.5):
        return None
    first, second = ((tokens @ matrix @ tokens.arrange(np.transpose)).max() for tokens in (cube[0], cube[1]))
    gap = first - second
    return Proof(float(radius), max(0.0, float(gap.low), float(-gap.high)))


def _reads(encoder: Encoder) -> Callable[[Interval], tuple[Interval, Interval]]:
    """Return the map from a pair ``[2, T, d]`` to what tells its states apart ``[2, n]``, and its Jacobian.

    The Jacobian ``[n, 2 T d]`` is that of the difference of the two.
    """
    states.encoder_state(encoder, reduced=True)  # refuses several layers, and weights without numbers
    spec, attention = encoder.spec, encoder.layers[0].attention
    if spec.norm or spec.position != "none":
        raise ValueError(f"norm={spec.norm}, position={spec.position!r}; nearest: norm=False, position='none'")
    n_heads, d_head, d_value = attention.spec.n_heads, attention.spec.d_head, attention.spec.d_value
    last = encoder.embedding if spec.embedding == "linear" else encoder.embedding.down_proj
    class_token = _array(encoder.class_token)

    # The stream is b + basis (phi(x), 0) at a token and b + basis (0, 1) at the class token. The constant b, like the
    # biases of keys and values, shifts all scores of a head by the same amount, and what it reads of both inputs.
    basis = concatenate([exact(_array(last.weight)), (exact(class_token) - _array(last.bias))[:, None]], axis=1)
    query = _array(attention.q_proj.weight) @ exact(class_token)[:, None]
    if spec.bias:
        query = query + _array(attention.q_proj.bias)[:, None]
    query = query.arrange(lambda ends: ends.reshape(n_heads, 1, d_head)) / root(d_head)
    scores = query @ _array(attention.k_proj.weight).reshape(n_heads, d_head, -1) @ basis
    n_mixed = basis.shape[1]
    through_output = n_heads * min(d_value, n_mixed) > spec.d_model
    if d_value <= n_mixed or through_output:
        values = exact(_array(attention.v_proj.weight).reshape(n_heads, d_value, -1)) @ basis
    else:
        values = exact(np.broadcast_to(np.eye(n_mixed), (n_heads, n_mixed, n_mixed)))
    rows = concatenate([scores, values], axis=1)

    def reads(x: Interval) -> tuple[Interval, Interval]:
        n_tokens = x.shape[1]
        phi, slope = _embed(encoder, x)
        tokens = (rows[..., :-1] @ phi[:, :, None, :, None])[..., 0]  # [2, T, H, 1 + C]: a score and a value
        slopes = rows[..., :-1] @ slope[:, :, None]  # [2, T, H, 1 + C, d]
        class_too = exact(np.zeros((2, 1, 1, 1))) + rows[None, None, ..., -1]
        all_ = concatenate([tokens, class_too], axis=1)
        weights = exp(all_[..., 0] - all_[..., 0].high.max(1, keepdims=True))  # a shift that changes no softmax
        weights = (weights / weights.sum(1)[:, None])[..., None]
        means = (weights * all_[..., 1:]).sum(1)
        from_mean = (tokens[..., 1:] - means[:, None])[..., None]
        jacobian = weights[:, :-1, ..., None] * (slopes[..., 1:, :] + from_mean * slopes[..., :1, :])
        means = means.arrange(lambda ends: ends.reshape(2, -1))
        jacobian = jacobian.arrange(lambda ends: ends.transpose(0, 2, 3, 1, 4).reshape(2, -1, n_tokens * spec.d_in))
        jacobian = concatenate([jacobian[0], -jacobian[1]], axis=1)
        if through_output:
            out = _array(attention.out_proj.weight)
            return (out @ means[..., None])[..., 0], out @ jacobian
        return means, jacobian

    return reads


def _embed(encoder: Encoder, x: Interval) -> tuple[Interval, Interval]:
    """What the last linear map of the embedding reads, ``[2, T, m]``, and its derivative ``[2, T, m, d]``."""
    if encoder.spec.embedding == "linear":
        return x, exact(np.broadcast_to(np.eye(x.shape[-1]), (*x.shape, x.shape[-1])))
    up = encoder.embedding.up_proj
    weight = _array(up.weight)
    inner = (weight @ x[..., None])[..., 0] + _array(up.bias)
    below = normal_cdf(inner)  # gelu(u) = u Phi(u), with derivative Phi(u) + u phi(u)
    return inner * below, (below + inner * normal_density(inner))[..., None] * weight


def _checked(encoder: Encoder, x: Tensor, x_other: Tensor, matrix: Tensor, lower: float, upper: float):
    """The pair ``[2, T, d]`` and the matrix, as arrays."""
    d_in = encoder.spec.d_in
    if x.ndim != 2 or x.shape != x_other.shape or x.shape[-1] != d_in or not len(x):
        raise ValueError(
            f"x and x_other have shapes {tuple(x.shape)} and {tuple(x_other.shape)}; expected [T, d_in={d_in}] twice"
        )
    if matrix.shape != (d_in, d_in):
        raise ValueError(f"matrix has shape {tuple(matrix.shape)}; expected {(d_in, d_in)}")
    pair, matrix = np.stack([_array(x), _array(x_other)]), _array(matrix)  # type: ignore[assignment] # an array now
    if not np.isfinite(matrix).all():
        raise ValueError("matrix holds numbers that are not finite")
    if not ((lower <= pair) & (pair <= upper)).all():
        raise ValueError(f"x or x_other lies outside the box [{lower}, {upper}]; nearest: x.clamp({lower}, {upper})")
    return pair, matrix


def _array(tensor: Tensor) -> np.ndarray:
    """The same numbers in float64, which holds all coarser types exactly."""
    return tensor.detach().cpu().double().numpy()
