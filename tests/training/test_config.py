import dataclasses
import json
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.training import TrainConfig, train
from tests.training import small


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
        ({"learning_rate": 10**400}, "must be a finite number above 0"),
        ({"learning_rate": Fraction(1, 10**400)}, "must be a finite number above 0"),
        ({"learning_rate": Decimal("sNaN")}, "learning_rate=Decimal('sNaN') must be a finite number above 0"),
        ({"learning_rate": torch.tensor(0.1)}, "learning_rate=tensor(0.1000) must be a finite number above 0"),
        ({"learning_rate": np.bool_(True)}, "must be a finite number above 0"),
        ({"betas": {0.9, 0.99}}, "must be two numbers; nearest: (0.9, 0.999)"),
        ({"warmup": np.int64(11)}, "warmup=11 must be 0 to n_steps=10 steps; nearest: 10"),
        ({"warmup": Fraction(3, 2)}, "warmup=Fraction(3, 2) must be a finite number of at least 0 and at most 1"),
        ({"device": "gpu"}, "device='gpu' is none that torch knows; for instance 'cpu', 'cuda'"),
        ({"device": None}, "device=None is none that torch knows"),
        ({"checkpoint": 3}, "checkpoint=3 must be the path of a file, or None"),
        ({"seed": 0.5}, "seed=0.5 must be an integer, for instance 0"),
        ({"checkpoint_every": 5}, "checkpoint_every=5 needs checkpoint, the path of a file; or leave it None"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TrainConfig(**{"n_steps": 10} | options)


NUMBERS = {
    "python": float,
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    "longdouble": np.longdouble,
    "fraction": Fraction,
    "decimal": Decimal,
}
RATES = ("learning_rate", "weight_decay", "momentum", "final", "clip_norm", "warmup")
INTEGERS = (int, np.int8, np.int64, np.uint16)


@settings(deadline=None)
@given(st.sampled_from([*NUMBERS.values()]), st.sampled_from(INTEGERS), st.floats(0.01, 0.99))
def test_numbers_of_every_kind_become_plain_ones(number, integer, value):
    value = round(value, 2)
    options = {name: number(value) for name in RATES} | {"betas": [number(value)] * 2}
    config = TrainConfig(integer(9), seed=integer(3), **options)
    assert all(type(getattr(config, name)) is float for name in RATES)
    assert [type(beta) for beta in config.betas] == [float, float]
    assert config.learning_rate == pytest.approx(value, rel=1e-3)
    assert TrainConfig(**json.loads(json.dumps(dataclasses.asdict(config)))) == config


@pytest.mark.parametrize("integer", INTEGERS)
def test_steps_of_warm_up_stay_steps(integer):
    config = TrainConfig(10, warmup=integer(1))
    assert (type(config.warmup), config.n_warmup) == (int, 1)


def test_a_run_with_numbers_of_numpy_is_saved_at_its_end(tmp_path):
    path = tmp_path / "c"
    options = {"learning_rate": np.float32(1e-3), "weight_decay": np.float32(0.1), "clip_norm": np.float64(1)}
    config = small.config(warmup=np.int64(2), betas=np.array([0.9, 0.95]), checkpoint=path, **options)
    assert train(small.model(), small.batch, small.loss, config).n_steps == 12
    assert path.is_file()
