"""Head counts layer by layer. A schedule is a tuple with one entry per layer, and every entry divides d_model."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import torch

from manyheads.models.checks import divisor, nearest_divisors, positive_int
from manyheads.models.seeds import generator
from manyheads.names import unknown

Heads = tuple[int, ...]


def uniform(n_layers: int, d_model: int, n_heads: int) -> Heads:
    """The same number of heads in every layer.

    >>> uniform(3, 768, 12)
    (12, 12, 12)
    """
    n_layers, d_model = positive_int("n_layers", n_layers), positive_int("d_model", d_model)
    return (divisor("n_heads", n_heads, "d_model", d_model),) * n_layers


def prism(n_layers: int, d_model: int, d_wide: int = 256, d_narrow: int = 128, switch: float = 0.5) -> Heads:
    """Few wide heads early, many narrow heads late.

    The first ``round(switch * n_layers)`` layers have heads of dimension ``d_wide``, the others of ``d_narrow``
    (``round`` as in Python: a half goes to the even neighbour).

    >>> prism(4, 768)
    (3, 3, 6, 6)

    Parameters
    ----------
    n_layers, d_model
        Number of layers L and width E.
    d_wide, d_narrow
        Head dimensions before and after the switch. Both divide E, and ``d_narrow <= d_wide``.
    switch
        Share of layers before the switch, from 0 to 1. At which layer the paper switches is not known to us, so it is
        a parameter here, and its default an assumption.

    References
    ----------
    Aggarwal 2026, arXiv 2606.27449, whose models use head dimensions 256 and 128.
    """
    n_layers, d_model = positive_int("n_layers", n_layers), positive_int("d_model", d_model)
    wide = d_model // divisor("d_wide", d_wide, "d_model", d_model)
    narrow = d_model // divisor("d_narrow", d_narrow, "d_model", d_model)
    if d_narrow > d_wide:
        raise ValueError(
            f"d_narrow={d_narrow} must not exceed d_wide={d_wide}; "
            f"nearest: d_narrow={d_wide}, or reverse(...) for narrow heads early"
        )
    if isinstance(switch, bool) or not isinstance(switch, Real) or not 0 <= switch <= 1:
        raise ValueError(f"switch={switch!r} must be a share of the layers from 0 to 1; nearest: {_clip(switch)}")
    n_wide = round(switch * n_layers)
    return (wide,) * n_wide + (narrow,) * (n_layers - n_wide)


def linear(n_layers: int, d_model: int, first: int, last: int) -> Heads:
    """From ``first`` to ``last`` heads in equal steps, each rounded to the nearest divisor of d_model.

    A tie goes to the smaller divisor. A single layer has ``first`` heads.

    >>> linear(4, 768, 3, 12)
    (3, 6, 8, 12)
    """
    return _interpolated(n_layers, d_model, first, last, lambda share: first + share * (last - first))


def geometric(n_layers: int, d_model: int, first: int, last: int) -> Heads:
    """From ``first`` to ``last`` heads in equal ratios, each rounded to the nearest divisor of d_model.

    A tie goes to the smaller divisor. A single layer has ``first`` heads.

    >>> geometric(3, 768, 3, 12)
    (3, 6, 12)
    """
    return _interpolated(n_layers, d_model, first, last, lambda share: first * (last / first) ** share)


def reverse(heads: Sequence[int]) -> Heads:
    """The same layers from last to first.

    >>> reverse((3, 3, 6))
    (6, 3, 3)
    """
    return _checked(heads)[::-1]


def shuffled(heads: Sequence[int], seed: int) -> Heads:
    """The same layers in an order drawn from ``seed``: the same order for the same seed and number of layers."""
    heads = _checked(heads)
    order = torch.randperm(len(heads), generator=generator(seed, "schedules.shuffled"))
    return tuple(heads[layer] for layer in order.tolist())


SCHEDULES: dict[str, Callable[..., Heads]] = {
    "uniform": uniform,
    "prism": prism,
    "linear": linear,
    "geometric": geometric,
}
"""Schedules by name. :func:`reverse` and :func:`shuffled` change a schedule and are not in it."""


def by_name(name: str, /, **arguments: Any) -> Heads:
    """Call the schedule ``name`` of ``SCHEDULES`` with ``arguments``.

    >>> by_name("prism", n_layers=4, d_model=768)
    (3, 3, 6, 6)

    Raises
    ------
    ValueError
        For a name or argument that does not exist, or an argument that is missing: the message lists the known ones.
    """
    if name not in tuple(SCHEDULES):  # a tuple, so that what cannot be hashed is refused too
        raise ValueError(unknown("schedule", name, SCHEDULES))
    schedule = SCHEDULES[name]
    known = inspect.signature(schedule).parameters
    for argument in arguments:
        if argument not in known:
            raise ValueError(unknown(f"argument of schedule {name!r}", argument, known))
    missing = [key for key, value in known.items() if value.default is value.empty and key not in arguments]
    if missing:
        raise ValueError(f"schedule {name!r} also needs {', '.join(missing)}; its arguments: {', '.join(known)}")
    return schedule(**arguments)


def _interpolated(n_layers: int, d_model: int, first: int, last: int, at: Callable[[float], float]) -> Heads:
    n_layers, d_model = positive_int("n_layers", n_layers), positive_int("d_model", d_model)
    divisor("first", first, "d_model", d_model)
    divisor("last", last, "d_model", d_model)
    shares = [layer / max(1, n_layers - 1) for layer in range(n_layers)]
    return tuple(_nearest_divisor(at(share), d_model) for share in shares)


def _nearest_divisor(value: float, of: int) -> int:
    value = round(value, 9)  # so that sqrt(4) = 2.0000000000000004 cannot decide a tie
    return min(nearest_divisors(value, of), key=lambda k: (abs(k - value), k))


def _checked(heads: Sequence[int]) -> Heads:
    if isinstance(heads, str) or not isinstance(heads, Sequence) or not heads:
        raise ValueError(f"heads={heads!r} must be a sequence of head counts, one per layer, for instance (3, 3, 6, 6)")
    return tuple(positive_int(f"heads[{layer}]", count) for layer, count in enumerate(heads))


def _clip(share: object) -> float:
    if not isinstance(share, Real) or isinstance(share, bool) or math.isnan(share):
        return 0.5
    return float(min(1.0, max(0.0, float(share))))
