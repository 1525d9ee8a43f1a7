"""Encoders whose weights are written down instead of learned. Each builder has a budget: its parts and its error.

- :func:`max_pair_network`: two layers of one head find the largest pairwise score.
- :func:`peeling_network`: k layers of one head find the k-th largest of T numbers that are a gap apart.
"""

from manyheads.surgery.constructions.max_pair import MaxPairBudget, max_pair_budget, max_pair_network
from manyheads.surgery.constructions.peeling import PeelingBudget, gap_probability, peeling_budget, peeling_network

__all__ = [
    "MaxPairBudget",
    "PeelingBudget",
    "gap_probability",
    "max_pair_budget",
    "max_pair_network",
    "peeling_budget",
    "peeling_network",
]
