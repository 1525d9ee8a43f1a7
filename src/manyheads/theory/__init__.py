"""Statements as code: nothing here is trained, nothing is edited in place.

>>> from manyheads.models import AttentionSpec
>>> from manyheads.theory import costs
>>> costs.cost(AttentionSpec(768, 12), context=1024).parameters
2359296
"""

from manyheads.theory import collisions, costs, decoding, patterns, rigorous, softmax, states

__all__ = ["collisions", "costs", "decoding", "patterns", "rigorous", "softmax", "states"]
