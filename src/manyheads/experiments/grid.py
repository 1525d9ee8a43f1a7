"""What an experiment measured: arrays with named axes, the same live and recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from manyheads.names import unknown
from manyheads.reporting.statistics import Mean, student

SEED = "seed"
"""The axis of independent repetitions; where there is one, it is the last."""


@dataclass(frozen=True)
class Grid:
    """Measured quantities over named axes.

    >>> grid = Grid({"n_tokens": (4, 8), "seed": (0, 1, 2)}, {"nmse": [[0.1, 0.2, 0.3], [0.4, 0.4, 0.4]]})
    >>> grid.at(n_tokens=8)["nmse"].tolist()
    [0.4, 0.4, 0.4]
    >>> round(grid.at(n_tokens=4).student("nmse").mean, 6)
    0.2

    Parameters
    ----------
    axes
        Name to values, in the order of the arrays' dimensions.
    values
        Quantity to array; all have one dimension an axis. What does not fit is refused.
    config
        How it was measured.
    origin
        A line for readers: where the numbers come from.
    date
        When they were recorded; empty when they were not.
    """

    axes: Mapping[str, tuple]
    values: Mapping[str, np.ndarray]
    config: Any = None
    origin: str = "Run here and now."
    date: str = ""

    def __post_init__(self) -> None:
        axes = {name: tuple(values) for name, values in self.axes.items()}
        arrays = {name: np.asarray(values) for name, values in self.values.items()}
        shape = tuple(map(len, axes.values()))
        for name, array in arrays.items():
            if array.shape != shape:
                sizes = ", ".join(f"{len(values)} {axis}" for axis, values in axes.items())
                raise ValueError(f"{name} has shape {list(array.shape)}, the axes have {sizes}")
        object.__setattr__(self, "axes", MappingProxyType(axes))
        object.__setattr__(self, "values", MappingProxyType(arrays))

    def __getattr__(self, name: str) -> tuple:
        """Return the values of an axis: ``grid.n_tokens``."""
        if name.startswith("_") or name not in self.axes:
            raise AttributeError(unknown("axis", name, () if name.startswith("_") else self.axes))
        return self.axes[name]

    def __getitem__(self, quantity: str) -> np.ndarray:
        """Return the array of a quantity over the axes that are left."""
        if quantity not in self.values:
            raise ValueError(unknown("quantity", quantity, self.values))
        return self.values[quantity]

    def at(self, **place: Any) -> Grid:
        """Fix axes at one of their values each: ``grid.at(n_tokens=16)`` has one axis less.

        Raises
        ------
        ValueError
            For an axis or a value that the grid does not have: the list of those it has.
        """
        index: list[Any] = [slice(None)] * len(self.axes)
        for axis, value in place.items():
            if axis not in self.axes:
                raise ValueError(unknown("axis", axis, self.axes))
            if value not in self.axes[axis]:
                raise ValueError(unknown(axis, value, map(str, self.axes[axis])))
            index[list(self.axes).index(axis)] = self.axes[axis].index(value)
        left = {axis: values for axis, values in self.axes.items() if axis not in place}
        return replace(self, axes=left, values={name: array[tuple(index)] for name, array in self.values.items()})

    def student(self, quantity: str, log: bool = False, confidence: float = 0.95) -> Any:
        """Mean and Student-t interval over the seeds.

        Parameters
        ----------
        quantity
            What to average.
        log
            Average logarithms instead, and give the geometric mean and its interval.
        confidence
            Of the interval.

        Returns
        -------
        Mean or list
            One :class:`~manyheads.reporting.statistics.Mean`, or nested lists of them over the axes that are left.

        Raises
        ------
        ValueError
            Without an axis of seeds, or for what :func:`~manyheads.reporting.statistics.student` refuses.
        """
        if SEED not in self.axes:
            raise ValueError(f"an interval needs the axis {SEED!r}; the axes are {', '.join(self.axes) or '(none)'}")

        def over(array: np.ndarray) -> Mean | list:
            return student(array, confidence, log) if array.ndim == 1 else [over(part) for part in array]

        return over(np.moveaxis(self[quantity], list(self.axes).index(SEED), -1))

    def to_json(self) -> dict[str, Any]:
        """Return axes and values as plain lists."""
        return {
            "axes": {name: list(values) for name, values in self.axes.items()},
            "values": {name: array.tolist() for name, array in self.values.items()},
        }


def assemble(
    axes: Mapping[str, Sequence], parts: Sequence[Mapping[str, Any]], n_seeds: int | None, **about: Any
) -> Grid:
    """Put what was measured at every point, in the order of ``itertools.product`` of the axes, into one grid.

    With ``n_seeds``, every part holds one number a seed, and the axis of seeds comes last.
    """
    shape = tuple(map(len, axes.values())) + (() if n_seeds is None else (n_seeds,))
    whole = {axis: tuple(values) for axis, values in axes.items()}
    whole |= {} if n_seeds is None else {SEED: tuple(range(n_seeds))}
    return Grid(whole, {name: np.array([p[name] for p in parts]).reshape(shape) for name in parts[0]}, **about)
