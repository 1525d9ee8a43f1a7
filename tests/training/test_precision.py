import re

import pytest
import torch

from manyheads.training import loop, precision, train
from manyheads.training.precision import Precision, decide
from tests.training import small

FLOAT32, BFLOAT16 = Precision(torch.float32), Precision(torch.float32, torch.bfloat16)
FLOAT16 = Precision(torch.float32, torch.float16, scaled=True)
T4, V100, A100, H100, PASCAL = (7, 5), (7, 0), (8, 0), (9, 0), (6, 1)


@pytest.mark.parametrize(
    ("dtype", "device", "capability", "decision"),
    [
        ("auto", "cpu", None, FLOAT32),
        ("auto", "mps", None, FLOAT32),
        ("auto", "cuda", PASCAL, FLOAT32),
        ("auto", "cuda", V100, FLOAT16),
        ("auto", "cuda", T4, FLOAT16),
        ("auto", "cuda", A100, BFLOAT16),
        ("auto", "cuda", H100, BFLOAT16),
        ("float32", "cuda", H100, FLOAT32),
        ("float64", "cpu", None, Precision(torch.float64)),
        ("float16", "cuda", H100, FLOAT16),
        ("bfloat16", "cuda", A100, BFLOAT16),
    ],
)
def test_the_decision_follows_from_the_device(dtype, device, capability, decision):
    assert decide(dtype, device, capability) == decision


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bfloat16", "cpu"), "dtype='bfloat16' is not native on cpu; nearest: 'float32', or 'auto'"),
        (("bfloat16", "cuda", T4), "dtype='bfloat16' is not native on cuda of capability 7.5; nearest: 'float16'"),
        (("float16", "cuda", PASCAL), "dtype='float16' is not native on cuda of capability 6.1; nearest: 'float32'"),
        (("half", "cuda", T4), "unknown dtype 'half'; known: auto, float32, float64, bfloat16, float16"),
    ],
)
def test_what_a_device_lacks_is_refused(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        decide(*arguments)


def test_parameters_must_have_the_type_to_train_in():
    with pytest.raises(ValueError, match=r"'class_token' is float64, but dtype trains float32; nearest: model\.to"):
        train(small.model(dtype=torch.float64), small.batch, small.loss, small.config())


def test_double_precision_trains_doubles():
    result = train(small.model(dtype=torch.float64), small.batch, small.loss, small.config(dtype="float64"))
    assert small.parameters(result.model).dtype == torch.float64


@pytest.mark.parametrize("half", [BFLOAT16, FLOAT16])
def test_half_precision_products_train_single_precision_parameters(half, monkeypatch):
    """A CPU can emulate what ``decide`` would only allow on a GPU, so the path itself is run here."""
    config = small.config(n_steps=150, clip_norm=0.5, eval_every=150)
    exact = train(small.model(), small.batch, small.loss, config)
    monkeypatch.setattr(precision, "on", lambda device, dtype: half)
    seen = set()

    def loss(model, batch):
        y = model(batch[0])
        seen.add(y.dtype)
        return (y.float() - batch[1]).square().mean()

    result = train(small.model(), small.batch, loss, config)
    assert seen == {half.products}
    assert {p.dtype for p in result.model.parameters()} == {torch.float32}
    # Loss scaling leaves out a few of the first steps, so the paths differ; where they start and lead to does not.
    (_, start), (_, end) = result.evaluations
    assert start == pytest.approx(exact.evaluations[0][1], rel=0.02)
    assert end < 0.2 * start
    assert exact.final < 0.2 * start
    assert (result.losses != exact.losses).any()


def test_clipping_measures_gradients_before_they_are_scaled(monkeypatch):
    monkeypatch.setattr(precision, "on", lambda device, dtype: FLOAT16)
    config = small.config(optimizer="sgd", learning_rate=1.0, schedule="constant", clip_norm=0.05)
    one = loop.Single(small.model(), small.batch, small.loss, config, small.batch, small.loss)
    before = small.parameters(one.model)
    for step in range(10):  # the first steps may overflow and be left out
        one.gradients(step)
        one.update(step)
        moved = (small.parameters(one.model) - before).norm()
        if moved:
            break
    assert moved == pytest.approx(0.05, rel=0.01)


def test_a_step_that_overflows_is_left_out(monkeypatch):
    monkeypatch.setattr(precision, "on", lambda device, dtype: FLOAT16)
    model = small.model()
    before = small.parameters(model)

    def endless(model, batch):
        return small.loss(model, batch) * torch.inf

    train(model, small.batch, endless, small.config(n_steps=1), evaluate=small.loss)
    assert torch.equal(small.parameters(model), before)
