"""Data as functions of a named seed; tasks know no model."""

from manyheads.tasks import pairs, retrieval

__all__ = ["pairs", "retrieval"]
