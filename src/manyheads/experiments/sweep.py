"""One shape for all experiments: a config names the axes, ``measure`` takes one point, the rest is shared.

An experiment is a module with

- ``Config``, a frozen dataclass derived from :class:`Config`: its defaults are the quick profile, its ``PROFILES`` what
  other profiles change, its ``AXES`` which fields hold the values of which axis;
- ``measure(config, **point) -> {quantity: numbers}``: one number a seed, where the config has ``n_seeds``;
- ``replay(config, recorded=None) -> {quantity: numbers}``: well-conditioned numbers that any machine finds again in
  seconds, such as the first losses of a training. A search hands out what it found, and verifies that when it gets it
  back as ``recorded``: its path would amplify rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from manyheads.experiments.grid import Grid, assemble
from manyheads.names import unknown
from manyheads.progress import progress
from manyheads.reporting import recordings

PROFILES = ("quick", "gpu", "full")
"""Seconds on a laptop, minutes on a GPU, and what recordings are made with."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What all experiments share: a base seed, and where to run.

    >>> Config.profile("quick", seed=3).seed
    3
    """

    PROFILES: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    AXES: ClassVar[Mapping[str, str]] = {}

    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):  # as JSON has tuples
                object.__setattr__(self, field.name, tuple(value))

    @classmethod
    def profile(cls, name: str, **changes: Any) -> Self:
        """Return the config of a profile, with changes.

        Raises
        ------
        ValueError
            For an unknown profile or field: the list of those that exist.
        """
        if not isinstance(name, str) or name not in PROFILES:
            raise ValueError(unknown("profile", name, PROFILES))
        known = [field.name for field in fields(cls)]
        for change in changes:
            if change not in known:
                raise ValueError(unknown("setting", change, known))
        return cls(**{**cls.PROFILES.get(name, {}), **changes})

    @property
    def axes(self) -> dict[str, tuple]:
        """Axis to values, in order."""
        return {axis: getattr(self, field) for axis, field in self.AXES.items()}


def points(config: Config) -> list[dict[str, Any]]:
    """Return the points of the sweep, the last axis fastest: independent parts of the work."""
    return [dict(zip(config.axes, place, strict=True)) for place in itertools.product(*config.axes.values())]


def combine(config: Config, parts: list[Mapping[str, Any]], **about: Any) -> Grid:
    """Put what was measured at the :func:`points`, in their order, into one grid."""
    return assemble(config.axes, parts, getattr(config, "n_seeds", None), config=config, **about)


def run(experiment: ModuleType, config: Config) -> Grid:
    """Measure every point of a sweep, here and now."""
    return combine(config, [experiment.measure(config, **p) for p in progress(points(config), desc="measuring")])


def recorded(experiment: ModuleType) -> Grid:
    """Return the recording of an experiment as the grid that :func:`run` would give; its origin is the credit line.

    Raises
    ------
    ValueError
        When there is no such recording, and, as ``DamagedRecording``, when it does not hold such a grid.
    """
    name = experiment.__name__.rpartition(".")[2]
    recording = recordings.load(name)
    try:
        config = experiment.Config(**recording.config)
        result, date = recording.result, recording.provenance["date"]
        return Grid(result["axes"], result["values"], config, recording.credit(), date)
    except (KeyError, TypeError, ValueError) as error:
        raise recordings.damaged(name, f"its result does not fit the experiment ({error})") from error


def plain(values: Mapping[str, Any]) -> dict[str, list]:
    """Return measured or replayed numbers as lists of floats, as recordings keep them."""
    return {name: np.asarray(numbers, dtype=float).tolist() for name, numbers in values.items()}
