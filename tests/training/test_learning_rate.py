import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyheads.training import TrainConfig
from manyheads.training.learning_rate import factor

steps = st.integers(1, 200)
share = st.floats(0, 1)


@given(steps, st.data(), share)
def test_the_cosine_at_its_edges(n_steps, data, final):
    warmup = data.draw(st.integers(0, n_steps))
    config = TrainConfig(n_steps, warmup=warmup, final=final)
    factors = [factor(config, step) for step in range(n_steps)]
    assert all(0 < f <= 1 for f in factors)
    if warmup < n_steps:
        assert factors[warmup] == 1
    ramp, wave = factors[:warmup], factors[warmup:]
    assert ramp == sorted(ramp)
    assert wave == sorted(wave, reverse=True)
    assert all(f >= final - 1e-12 for f in wave)
    if n_steps > warmup:
        assert factor(config, n_steps) == pytest.approx(final, abs=1e-12)  # one step beyond the last
    if warmup:
        assert factors[0] == 1 / (warmup + 1)


@given(steps, st.data())
def test_constant_is_constant_after_warm_up(n_steps, data):
    warmup = data.draw(st.integers(0, n_steps))
    config = TrainConfig(n_steps, warmup=warmup, schedule="constant")
    assert {factor(config, step) for step in range(warmup, n_steps)} <= {1.0}
    assert all(factor(config, step) == (step + 1) / (warmup + 1) for step in range(warmup))


@given(steps, share)
def test_a_share_of_warm_up_is_that_many_steps(n_steps, warmup):
    assert TrainConfig(n_steps, warmup=warmup).n_warmup == round(warmup * n_steps)


def test_one_is_a_step_and_one_point_zero_all_of_them():
    assert TrainConfig(50, warmup=1).n_warmup == 1
    assert TrainConfig(50, warmup=1.0).n_warmup == 50


def test_it_is_torchs_cosine_after_torchs_warm_up():
    n_steps, warmup, final, rate = 40, 7, 0.1, 0.3
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)
    ramp = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / (warmup + 1), 1.0, warmup)
    wave = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps - warmup, final * rate)
    theirs = torch.optim.lr_scheduler.SequentialLR(optimizer, [ramp, wave], [warmup])
    config = TrainConfig(n_steps, learning_rate=rate, warmup=warmup, final=final)
    for step in range(n_steps):
        assert math.isclose(rate * factor(config, step), optimizer.param_groups[0]["lr"], rel_tol=1e-9)
        optimizer.step()
        theirs.step()
