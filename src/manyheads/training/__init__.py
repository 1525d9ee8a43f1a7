"""One training engine for everything: a loop for one model, and an ensemble that trains many small ones at once.

>>> from manyheads.training import TrainConfig, ensemble, train
>>> config = TrainConfig(n_steps=2000, learning_rate=3e-3, warmup=0.1, clip_norm=1.0)
"""

from manyheads.training import ensemble
from manyheads.training.checkpoint import DamagedCheckpoint, UnsavedCheckpoint
from manyheads.training.config import TrainConfig
from manyheads.training.engine import Result
from manyheads.training.loop import train

__all__ = ["DamagedCheckpoint", "Result", "TrainConfig", "UnsavedCheckpoint", "ensemble", "train"]
