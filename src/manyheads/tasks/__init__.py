"""Data as functions of a named seed; tasks know no model."""

from manyheads.tasks import retrieval

__all__ = ["retrieval"]
