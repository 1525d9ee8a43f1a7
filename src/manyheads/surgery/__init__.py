"""Functions that make live modules with weights set by hand, or change the weights of live modules.

>>> import torch
>>> from manyheads.surgery import constructions
>>> network = constructions.max_pair_network(-torch.eye(2), n_tokens=8, tolerance=0.1)
>>> network(torch.ones(1, 8, 2, dtype=torch.float64)).shape
torch.Size([1, 1])
"""

from manyheads.surgery import constructions

__all__ = ["constructions"]
