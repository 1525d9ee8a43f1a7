import dataclasses
import json
import re

import numpy as np
import pytest

from manyheads.training import TrainConfig


def test_a_config_is_frozen_and_survives_json():
    config = TrainConfig(n_steps=np.int64(7), betas=[0.9, 0.95], warmup=0.5, clip_norm=1.0, checkpoint="here")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.n_steps = 8
    assert config.betas == (0.9, 0.95)
    assert TrainConfig(**json.loads(json.dumps(dataclasses.asdict(config)))) == config
    assert hash(config)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_steps": 0}, "n_steps=0 must be a positive integer; nearest: 1"),
        ({"batch_size": 2.5}, "batch_size=2.5 must be a positive integer; nearest: 2"),
        ({"eval_size": None}, "eval_size=None must be a positive integer"),
        ({"eval_every": 0}, "eval_every=0 must be a positive integer; nearest: 1"),
        ({"stop_after": -3}, "stop_after=-3 must be a positive integer; nearest: 1"),
        ({"optimizer": "adam"}, "unknown optimizer 'adam'; did you mean 'adamw'? known: adamw, sgd"),
        ({"schedule": "cosin"}, "unknown schedule 'cosin'; did you mean 'cosine'? known: cosine, constant"),
        ({"dtype": "float23"}, "unknown dtype 'float23'; did you mean 'float32'? known: auto, float32, float64,"),
        ({"dtype": ["float32"]}, "unknown dtype ['float32']"),
        ({"learning_rate": 0}, "learning_rate=0 must be a finite number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate=nan must be a finite number above 0"),
        ({"learning_rate": True}, "learning_rate=True must be a finite number"),
        ({"weight_decay": -1}, "weight_decay=-1 must be a finite number of at least 0; nearest: 0"),
        ({"momentum": 1}, "momentum=1 must be a finite number of at least 0 and below 1"),
        ({"final": 1.5}, "final=1.5 must be a finite number of at least 0 and at most 1; nearest: 1"),
        ({"clip_norm": 0}, "clip_norm=0 must be a finite number above 0"),
        ({"betas": 0.9}, "betas=0.9 must be two numbers; nearest: (0.9, 0.999)"),
        ({"betas": (0.9, 1.0)}, "betas[1]=1.0 must be a finite number of at least 0 and below 1"),
        ({"warmup": 11}, "warmup=11 must be 0 to n_steps=10 steps; nearest: 10; or give a share, such as 0.1"),
        ({"warmup": -1}, "warmup=-1 must be 0 to n_steps=10 steps; nearest: 0"),
        ({"warmup": 1.5}, "warmup=1.5 must be a finite number of at least 0 and at most 1; nearest: 1"),
        ({"warmup": True}, "warmup=True must be a finite number"),
        ({"seed": 0.5}, "seed=0.5 must be an integer, for instance 0"),
        ({"checkpoint_every": 5}, "checkpoint_every=5 needs checkpoint, the path of a file; or leave it None"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TrainConfig(**{"n_steps": 10} | options)
