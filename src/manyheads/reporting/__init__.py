"""Figures, explorers, claims and recordings: how a chapter shows what it found."""

from manyheads.progress import progress
from manyheads.reporting import claims, figures, recordings, statistics
from manyheads.reporting.explore import Axis, explore
from manyheads.reporting.glue import glue
from manyheads.reporting.trial import trial

__all__ = ["Axis", "claims", "explore", "figures", "glue", "progress", "recordings", "statistics", "trial"]
