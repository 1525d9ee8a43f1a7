"""Whatever is handed to a public constructor, it works or raises a ValueError that names the argument."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.models import AttentionSpec, EncoderSpec, FeedForward, schedules, seeds
from manyheads.reporting.statistics import student
from manyheads.surgery import constructions
from manyheads.theory import costs, decoding, softmax
from manyheads.training import TrainConfig

SPEC = AttentionSpec(8, 2)
# a public function or constructor, and arguments that it takes
TARGETS = {
    "AttentionSpec": (AttentionSpec, {"d_model": 8, "n_heads": 2, "d_head": 4, "d_value": 4, "n_kv_heads": 1,
                                      "position": "rope", "rotary_dim": 2, "qk_norm": True, "qk_gain": True,
                                      "qk_eps": 1e-6, "bias": True, "causal": True}),
    "EncoderSpec": (EncoderSpec, {"d_in": 1, "d_out": 1, "d_model": 8, "heads": (2,), "d_head": 4, "d_value": 4,
                                  "d_ff": 8, "ffn": "gelu", "norm": False, "embedding": "mlp", "position": "none",
                                  "bias": False}),
    "FeedForward": (FeedForward, {"d_in": 2, "d_hidden": 3, "d_out": 2, "kind": "gelu"}),
    "TrainConfig": (TrainConfig, {"n_steps": 10, "batch_size": 4, "optimizer": "adamw", "learning_rate": 1e-3,
                                  "weight_decay": 0.0, "betas": (0.9, 0.99), "momentum": 0.0, "warmup": 0.1,
                                  "schedule": "cosine", "final": 0.0, "clip_norm": 1.0, "eval_every": 2,
                                  "eval_size": 4, "seed": 0, "dtype": "float32", "stop_after": 3}),
    "uniform": (schedules.uniform, {"n_layers": 2, "d_model": 8, "n_heads": 2}),
    "prism": (schedules.prism, {"n_layers": 2, "d_model": 8, "d_wide": 4, "d_narrow": 2, "switch": 0.5}),
    "linear": (schedules.linear, {"n_layers": 3, "d_model": 8, "first": 1, "last": 4}),
    "generator": (lambda seed: seeds.generator(seed, "fuzz"), {"seed": 0}),
    "cost": (lambda context, dtype: costs.cost(SPEC, context, dtype), {"context": 4, "dtype": "float32"}),
    "retrieval_error_bound": (softmax.retrieval_error_bound, {"n_tokens": 4, "beta": 1.0, "value_range": 1.0}),
    "sharpness_for": (softmax.sharpness_for, {"n_tokens": 4, "tolerance": 0.1, "value_range": 1.0}),
    "amplification_bound": (decoding.amplification_bound, {"n_numbers": 2, "n_state": 1, "tolerance": 0.1,
                                                           "state_range": 1.0}),
    "peeling_budget": (constructions.peeling_budget, {"k": 2, "n_tokens": 4, "gap": 0.1, "tolerance": 0.01}),
    "student": (lambda confidence: student([1.0, 2.0, 4.0], confidence), {"confidence": 0.95}),
}  # fmt: skip
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.sampled_from([Fraction(1, 3), 1j, np.float32(0.5), np.int64(3), np.nan, -math.inf, object(), 10**400, "8"]),
    st.lists(st.integers(-1, 5), max_size=3),
    st.tuples(st.floats(), st.floats()),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.sampled_from([torch.tensor(2), torch.tensor([1.0, 2.0]), np.array([1, 2])]),
)


def refused(call, arguments):
    """What a ValueError says; any other exception passes on."""
    try:
        call(**arguments)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60)
@given(st.data())
def test_it_works_or_names_the_argument(name, data):
    call, valid = TARGETS[name]
    argument = data.draw(st.sampled_from(sorted(valid)))
    value = data.draw(JUNK)
    if name in ("uniform", "prism", "linear") and argument == "n_layers" and isinstance(value, int):
        value = min(value, 1000)  # a tuple of so many layers is what was asked for
    raised = refused(call, {**valid, argument: value})
    assert raised is None or argument in raised
