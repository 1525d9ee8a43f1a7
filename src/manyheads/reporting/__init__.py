"""Figures, explorers, claims and recordings: how a chapter shows what it found."""

from manyheads.progress import progress
from manyheads.reporting import claims, figures, recordings, statistics
from manyheads.reporting.controls import Axis
from manyheads.reporting.exercise import exercise
from manyheads.reporting.explore import explore
from manyheads.reporting.glue import glue
from manyheads.reporting.trial import trial

__all__ = [
    "Axis",
    "claims",
    "exercise",
    "explore",
    "figures",
    "glue",
    "progress",
    "recordings",
    "statistics",
    "trial",
]
