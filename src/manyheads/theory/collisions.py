r"""Two inputs that one attention map cannot tell apart, and what that costs every decoder behind it.

Fix an attention map :math:`a` from an input X, T tokens of dimension d in a box, to a state of n numbers: embedding,
scores and values are given, the decoder is not. Let F be the target.

**Lipschitz form.** If two inputs have states at distance r and targets at distance g, every decoder D with Lipschitz
constant K (Euclidean norm on states) errs somewhere by at least

.. math:: \max(0,\; (g - K r) / 2) ,

since the two answers differ by at most K r and each misses its target by at most the error: g is at most twice the
error plus K r.

**Exact form.** If moreover an exact collision is proved to exist within distance :math:`\rho` of the pair, every
decoder of this map, continuous or not, errs by at least :math:`(g - 2\,\mathrm{Lip}_F\,\rho) / 2`. The proof is
Newton and Kantorovich's. Let J be the derivative of :math:`a(x) - a(x')` with respect to those coordinates of both
inputs that do not lie at the boundary of the box, :math:`J^+` its pseudo-inverse, and L a Lipschitz constant of the
derivative of :math:`a` (spectral norm). The equation :math:`a(x + (J^+ c)_1) = a(x' + (J^+ c)_2)` in n unknowns c has
derivative 1 at c = 0, residual r there, and a derivative with Lipschitz constant :math:`\kappa = L \|J^+\|^2`. If
:math:`\kappa r \le 1/2`, it has a solution with :math:`|c| \le (1 - \sqrt{1 - 2 \kappa r}) / \kappa`, so
:math:`\rho = \|J^+\| |c|`; the box must hold the ball of this radius in those coordinates.

**Words.** A pair is *certified* when an exact collision near it is proved. Of every other pair, half the target gap is
what a search found, the *half gap*: it binds no decoder but those whose Lipschitz constant the first form can take.

**What this does not prove.** It speaks of one map: another embedding, other scores, other values may separate the
pair. It bounds the largest error over the box, not a mean such as NMSE. And where nothing is certified, nothing
follows. Numbers are rigorous up to rounding in float64; :func:`.rigorous.prove` needs no such clause, for encoders.

Ours (claim X4). It illustrates the mechanism behind the lower bound for one layer of Yu, Jiang, Bao & Li 2026
(arXiv 2605.17930, claim I1) and does not prove that bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad, jacrev, vmap

from manyheads.models.checks import above_zero, at_least_zero, positive_int
from manyheads.models.seeds import generator
from manyheads.progress import progress
from manyheads.theory.ranks import rank_tolerance

Map = Callable[[Tensor], Tensor]
NEWTON_STEPS = 12
CLEAR_ANGLE = 1e-2
"""Radians. A null space that rounding may turn by more is none."""


@dataclass(frozen=True)
class Certificate:
    """A pair of inputs with nearly equal states, certified if ``exact_bound`` is a number. Made by :func:`certify`."""

    x: Tensor
    """The input with the larger target, ``[T, d]``."""
    x_other: Tensor
    """The other one."""
    state_distance: float
    """r, Euclidean."""
    target_gap: float
    """g = F(x) - F(x_other), at least 0. Half of it is the half gap, and bounds nothing by itself."""
    exact_bound: float | None = None
    """Error of every decoder of this map; ``None`` where no exact collision is proved."""
    collision_radius: float | None = None
    """rho: how far from the pair, in all coordinates of both, the exact collision lies at most."""

    def error_bound(self, lipschitz: float) -> float:
        """Largest error at least, of every decoder with this Lipschitz constant (Euclidean norm on states)."""
        lipschitz = at_least_zero("lipschitz", lipschitz)
        return max(0.0, (self.target_gap - lipschitz * self.state_distance) / 2)


@torch.no_grad()
def certify(
    attention_map: Map,
    target: Map,
    x0: Tensor,
    lower: Tensor | float,
    upper: Tensor | float,
    *,
    n_starts: int = 16,
    n_steps: int = 150,
    step: float = 0.2,
    tolerance: float = 1e-11,
    seed: int = 0,
    jacobian_lipschitz: float | Callable[[Tensor, float], float] | None = None,
    target_lipschitz: float | None = None,
) -> Certificate:
    r"""Search for two inputs in a box that a map takes to the same state, as far apart in the target as possible.

    From every start two walkers move along the fibre :math:`a(X) = a(X_0)`, one up in F and one down: the gradient is
    projected onto the null space of the derivative of :math:`a`, and Newton steps lead back onto the fibre. A
    coordinate that reaches the boundary of the box stays there, and Newton corrects with the others; merely cutting a
    point off at the boundary would leave the fibre. All walkers move at once.

    In float64, singular values below 1e-13 of the largest are zero, and those above 1e-11 are not, however weak: a map
    that keeps all T d numbers, if only just, leaves no walk and no gap. Where one lies between, a walker stays.

    Returned is the pair of a start with the widest gap; with both constants below, the widest that is certified, if
    there is one. A fibre may have several components, and walkers stay in that of their start: more starts may find a
    wider gap.

    Parameters
    ----------
    attention_map
        From ``[T, d]`` to a state of any shape; differentiable, and made of operations that ``torch.func.vmap`` knows.
    target
        From ``[T, d]`` to a number; differentiable almost everywhere.
    x0
        First start, ``[T, d]``. Its type (use float64) and device are those of the walk.
    lower, upper
        The box: numbers, or tensors that broadcast to ``[T, d]``.
    n_starts
        Starts in all; those after the first are drawn uniformly from the box.
    n_steps, step
        Steps of a walk, and the Euclidean length of its first, relative to the length of the box's longest side.
        Steps shrink linearly to zero.
    tolerance
        State distance to its start that a walker may not exceed.
    seed
        Of the further starts.
    jacobian_lipschitz
        Lipschitz constant L of the map's derivative (spectral norm, Euclidean distance of inputs), over the box, or as
        a function of a centre ``[T, d]`` and a radius. For our encoders: :func:`.states.jacobian_lipschitz`.
    target_lipschitz
        Lipschitz constant of F over the box (Euclidean). Both are needed for ``exact_bound``.

    Raises
    ------
    ValueError
        When ``x0`` is not a ``[T, d]`` in the box, float32 or float64, the box is empty or has no end, a number is out
        of range, ``tolerance`` is finer than the type of ``x0``, or map or target are not finite at a start.
    """
    lower, upper = _box(x0, lower, upper)
    n_starts, n_steps = positive_int("n_starts", n_starts), positive_int("n_steps", n_steps)
    step, tolerance = above_zero("step", step), above_zero("tolerance", tolerance)
    if target_lipschitz is not None:
        target_lipschitz = at_least_zero("target_lipschitz", target_lipschitz)
    if jacobian_lipschitz is not None and not callable(jacobian_lipschitz):
        jacobian_lipschitz = at_least_zero("jacobian_lipschitz", jacobian_lipschitz, infinite=True)
    finest = torch.finfo(x0.dtype).eps
    if tolerance < finest:
        raise ValueError(
            f"tolerance={tolerance} is finer than {x0.dtype} can tell; nearest: {finest:.1e}, or x0 and map in float64"
        )
    shape = x0.shape
    fibre = _Fibre(lambda flat: attention_map(flat.view(shape)).flatten(), lower.flatten(), upper.flatten(), tolerance)
    value = vmap(lambda flat: target(flat.view(shape)))
    slope = vmap(grad(lambda flat: target(flat.view(shape))))

    draws = torch.rand(n_starts - 1, x0.numel(), dtype=x0.dtype, generator=generator(seed, "collisions", "starts"))
    starts = torch.cat([x0.flatten()[None], fibre.lower + (fibre.upper - fibre.lower) * draws.to(x0.device)])
    x = starts.repeat(2, 1)
    states = fibre.state(x)
    sign = torch.ones(len(x), 1, dtype=x.dtype, device=x.device)
    sign[n_starts:] = -1
    best, best_value = x, value(x)
    if not bool(states.isfinite().all() & best_value.isfinite().all()):
        raise ValueError("attention_map or target is not finite at a start: it must be so everywhere in the box")
    length = torch.full_like(sign, step * float((upper - lower).max()))
    for index in progress(range(n_steps), desc="walking"):
        jacobian = fibre.jacobian(x)
        direction = fibre.tangent(x, jacobian, sign * slope(x))
        if not bool(direction.any()):
            break
        candidate = x + length * (1 - index / n_steps) * direction
        candidate, there = fibre.back(candidate, jacobian, states)
        x = torch.where(there, candidate, x)
        length = torch.where(there, length, length / 2)
        reached = value(x)
        better = there[:, 0] & (sign[:, 0] * (reached - best_value) > 0)
        best = torch.where(better[:, None], x, best)
        best_value = torch.where(better, reached, best_value)

    best = fibre.polish(best, states)
    upper_half, lower_half = best.split(n_starts)
    gaps = value(upper_half) - value(lower_half)
    pairs = torch.stack([upper_half, lower_half], dim=1)[gaps.argsort(descending=True)]  # the widest gap first
    pair, radius = pairs[0], None
    if jacobian_lipschitz is not None and target_lipschitz is not None:
        for candidate in pairs:
            radius = _collision_radius(fibre, candidate, jacobian_lipschitz, shape)
            if radius is not None:
                pair = candidate
                break
    distance = float(torch.dist(*fibre.state(pair)))
    gap = max(0.0, float(value(pair)[0] - value(pair)[1]))
    exact = None if radius is None else max(0.0, (gap - 2 * target_lipschitz * radius) / 2)
    return Certificate(pair[0].view(shape), pair[1].view(shape), distance, gap, exact, radius)


class _Fibre:
    """The points of a box that a map takes to given states; all methods take walkers ``[W, N]``."""

    def __init__(self, attention_map: Map, lower: Tensor, upper: Tensor, tolerance: float):
        self.state = vmap(attention_map)
        self.jacobian = vmap(jacrev(attention_map))
        self.lower, self.upper, self.tolerance = lower, upper, tolerance

    def tangent(self, x: Tensor, jacobian: Tensor, slope: Tensor) -> Tensor:
        """Unit vectors along the fibre and into the box, along ``slope`` as far as both allow; 0 where neither does.

        A direction that the map keeps weakly is kept. Along it, a walker would find the tolerance and no collision.
        """
        zero = _zero(jacobian)
        free = torch.ones_like(x, dtype=torch.bool)
        for _ in range(x.shape[-1]):
            _, singular, rows = torch.linalg.svd(jacobian * free[..., None, :], full_matrices=False)
            kept = singular > zero * singular[..., :1]
            rows = rows * kept[..., None]
            move = free * slope
            move = free * (move - _apply(rows.mT, rows @ move[..., None]))
            outward = free & (((x <= self.lower) & (move < 0)) | ((x >= self.upper) & (move > 0)))
            if not bool(outward.any()):
                break
            free = free & ~outward
        # Rounding turns the null space by this angle at most: Wedin 1972, BIT 12.
        angle = zero * singular[..., :1] / singular.where(kept, math.inf).amin(-1, keepdim=True)
        room = free.sum(-1, keepdim=True) > kept.sum(-1, keepdim=True)
        size = move.norm(dim=-1, keepdim=True)
        clear = room & (angle <= CLEAR_ANGLE) & (size > angle * slope.norm(dim=-1, keepdim=True))
        return torch.where(clear, move / size, 0.0)

    def polish(self, x: Tensor, states: Tensor) -> Tensor:
        """Newton's steps without a tolerance, kept where they come closer."""
        closer, _ = self.back(x, self.jacobian(x), states, tolerance=0.0)
        distances = [(self.state(point) - states).norm(dim=-1, keepdim=True) for point in (closer, x)]
        return torch.where(distances[0] < distances[1], closer, x)

    def back(self, x: Tensor, jacobian: Tensor, states: Tensor, tolerance: float | None = None):
        """Newton's way back to the fibre through the box, ``[W, N]``, and whether it arrived, ``[W, 1]``."""
        tolerance = self.tolerance if tolerance is None else tolerance
        free = torch.ones_like(x, dtype=torch.bool)
        inverse = None
        for _ in range(NEWTON_STEPS):
            reached = free & ((x <= self.lower) | (x >= self.upper))
            x = x.clamp(self.lower, self.upper)
            residual = self.state(x) - states
            if bool((residual.norm(dim=-1) <= tolerance).all()):
                break
            if inverse is None or bool(reached.any()):
                free = free & ~reached
                inverse = _inverse(jacobian, free)
            # The derivative at the start of the step serves for all corrections: steps are short.
            x = x - _apply(inverse, residual[..., None])
        x = x.clamp(self.lower, self.upper)
        there = (self.state(x) - states).norm(dim=-1, keepdim=True) <= tolerance
        return x, there


def _inverse(jacobian: Tensor, free: Tensor) -> Tensor:
    """Pseudo-inverses of the derivatives with respect to the free coordinates, ``[W, N, n]``; other rows are 0."""
    return torch.linalg.pinv(jacobian * free[..., None, :], rtol=_zero(jacobian))


def _zero(jacobian: Tensor) -> float:
    """Share of the largest singular value below which others are zero: a thousand times what rounding does."""
    return rank_tolerance(jacobian, least=1e-13)


def _apply(matrix: Tensor, column: Tensor) -> Tensor:
    return (matrix @ column)[..., 0]


def _collision_radius(fibre: _Fibre, pair: Tensor, lipschitz, shape) -> float | None:
    """Radius in which Newton and Kantorovich prove an exact collision near a pair ``[2, N]``, or ``None``."""
    noise = 64 * torch.finfo(pair.dtype).eps  # relative; rounding may hide this much
    states = fibre.state(pair)
    residual = float(torch.dist(*states) + noise * states.norm())
    room = torch.minimum(pair - fibre.lower, fibre.upper - pair)
    inside = room > 1e-6 * (fibre.upper - fibre.lower)
    jacobian = torch.cat([part[:, free] for part, free in zip(fibre.jacobian(pair), inside, strict=True)], dim=1)
    if jacobian.shape[1] < jacobian.shape[0]:
        return None
    singular = torch.linalg.svdvals(jacobian)
    smallest = float(singular[-1] - noise * singular[0])
    if smallest <= 0:
        return None
    ball = 2 * residual / smallest  # holds every solution that the theorem can promise
    if callable(lipschitz):
        lipschitz = max(lipschitz(point.view(shape), ball) for point in pair)
    kappa = lipschitz / smallest**2
    if not (kappa * residual <= 0.5 and ball < float(room[inside].min())):
        return None
    # The formula above without cancellation.
    return 2 * residual / (1 + math.sqrt(1 - 2 * kappa * residual)) / smallest


def _box(x0: Tensor, lower: Tensor | float, upper: Tensor | float) -> tuple[Tensor, Tensor]:
    if x0.ndim != 2 or x0.numel() == 0 or x0.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"x0 has shape {tuple(x0.shape)} and type {x0.dtype}; expected float32 or float64 [T, d]")
    if x0.is_meta:
        raise ValueError("x0 is on the meta device and holds no numbers; give a start that has some")
    lower, upper = (torch.as_tensor(b, dtype=x0.dtype, device=x0.device).expand(x0.shape) for b in (lower, upper))
    if not bool((lower.isfinite() & upper.isfinite()).all()):
        raise ValueError("lower and upper must be finite: the search starts anywhere in the box")
    if not bool((lower < upper).all()):
        raise ValueError("lower must be below upper everywhere: the box is empty or flat")
    if not bool(((lower <= x0) & (x0 <= upper)).all()):
        raise ValueError("x0 lies outside the box; nearest: x0.clamp(lower, upper)")
    return lower, upper
