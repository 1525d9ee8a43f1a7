"""Torch modules, small enough to read: attention with every option the book needs, and the encoder built on it.

>>> from manyheads.models import Attention, AttentionSpec
>>> attention = Attention(AttentionSpec(d_model=64, n_heads=4, causal=True))
"""

from manyheads.models import schedules, seeds
from manyheads.models.attention import Attention
from manyheads.models.encoder import Encoder, EncoderSpec
from manyheads.models.feedforward import FeedForward
from manyheads.models.spec import AttentionSpec

__all__ = ["Attention", "AttentionSpec", "Encoder", "EncoderSpec", "FeedForward", "schedules", "seeds"]
