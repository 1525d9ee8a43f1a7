"""What the loop and the ensemble ask of models, samples and losses, with the same words."""

import re

import numpy as np
import pytest
import torch
from torch import nn

from manyheads.training import checks, ensemble, train
from tests.training import small


def in_the_loop(model=None, batch=small.batch, loss=small.loss, config=None, **options):
    return train(model or small.model(), batch, loss, config or small.config(), **options)


def in_an_ensemble(model=None, batch=small.batch, loss=small.loss, config=None, **options):
    return ensemble.train([model or small.model()], batch, loss, [config or small.config()], **options)[0]


both = pytest.mark.parametrize("run", [in_the_loop, in_an_ensemble])


def refused(run, message, **options):
    with pytest.raises(ValueError, match=re.escape(message)):
        run(**options)


# --- models ---------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            small.model().requires_grad_(False),
            " has no parameter to train: 23 in all, every one with requires_grad=False",
        ),
        (nn.Flatten(), " has no parameter to train: 0 in all"),
        (lambda x: x, " must be a torch.nn.Module, not function"),
        (
            small.model().to("meta"),
            " is on the meta device and holds no numbers; call module.to_empty(device=...) first",
        ),
        (nn.Linear(4, 1, dtype=torch.complex64), "parameter 'weight' is complex64, but dtype trains float32"),
    ],
)
def test_what_cannot_be_trained_is_named(run, model, message):
    refused(run, message, model=model)


@both
@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")
def test_a_device_that_is_not_there_is_named(run):
    refused(run, "device='cuda' cannot be used here: ", config=small.config(device="cuda"))


# --- samples --------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("samples", "what"),
    [({"x": torch.ones(8)}, "dict"), ((torch.ones(8), {}), "dict"), (np.ones(8), "ndarray"), (None, "NoneType")],
)
def test_samples_are_tensors(run, samples, what):
    message = f"batch must return a tensor or a tuple of tensors, not {what}"
    refused(run, message, batch=lambda generator, n: samples)
    refused(run, message, held_out=lambda generator, n: samples)


def typed(x_type=torch.float32, y_type=torch.float32):
    def batch(generator, n):
        x, y = small.batch(generator, n)
        return x.to(x_type), (10 * y).round().to(y_type)

    return batch


@both
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_floating_point_samples_get_the_type_of_the_parameters(run, dtype):
    def rounded(generator, n):
        x, y = typed(dtype)(generator, n)
        return x.float(), y

    assert np.array_equal(run(batch=typed(dtype)).losses, run(batch=rounded).losses)


def looking_up():
    return nn.Sequential(nn.Flatten(), nn.Embedding(2, 3), nn.Flatten(), nn.Linear(12, 1))


@both
@pytest.mark.parametrize(
    ("make_model", "dtype"),
    [
        (small.model, torch.int64),
        (small.model, torch.bool),
        (small.model, torch.complex64),
        (looking_up, torch.float32),
        (looking_up, torch.bool),
        (lambda: nn.Sequential(nn.Conv1d(4, 1, 1), nn.Flatten()), torch.int64),
        (lambda: nn.Sequential(nn.LayerNorm(1), nn.Flatten(), nn.Linear(4, 1)), torch.int64),
    ],
)
def test_samples_of_a_type_that_does_not_fit_are_named(run, make_model, dtype):
    name = str(dtype).removeprefix("torch.")
    message = f"samples ({name} [8, 4, 1], float32 [8, 1]) do not fit parameters of type float32: "
    refused(run, message, model=make_model(), batch=typed(dtype))
    message = f"samples ({name} [16, 4, 1], float32 [16, 1]) do not fit"
    fitting = typed(torch.int64 if make_model is looking_up else torch.float32)
    refused(run, message, model=make_model(), batch=fitting, held_out=typed(dtype))


@both
def test_whole_numbers_that_are_looked_up_fit(run):
    assert run(model=looking_up(), batch=typed(torch.int64)).n_steps == 12


@both
def test_other_errors_of_a_model_stay_what_they_are(run):
    with pytest.raises(RuntimeError, match="size"):
        run(loss=lambda model, batch: (model(batch[0])[:3] - batch[1]).square().mean())


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda x, y: (x[:, :3], y), "float32 [8, 4, 1] or float32 [8, 3, 1]"),
        (lambda x, y: (x, y.double()), "float32 [8, 1] or float64 [8, 1]"),
        (lambda x, y: (x,), "(float32 [8, 4, 1], float32 [8, 1]) or (float32 [8, 4, 1])"),
        (lambda x, y: x, "(float32 [8, 4, 1], float32 [8, 1]) or float32 [8, 4, 1]"),
    ],
)
def test_members_need_samples_alike(other, message):
    first = checks.each(lambda x: x, small.batch(torch.Generator(), 8))
    calls = []

    def batch(generator, n):
        calls.append(n)
        return first if len(calls) % 2 else other(*first)

    configs = [small.config(seed=seed, eval_size=8) for seed in range(2)]
    with pytest.raises(ValueError, match=re.escape(f"batch returns {message}, but all members need samples alike")):
        ensemble.train(small.model, batch, small.loss, configs)


# --- losses ---------------------------------------------------------------------------------------------------------


def returning(change):
    return lambda model, batch: change(small.loss(model, batch))


NO_SCALAR = {
    "float": (lambda value: 1.0, " must return a scalar tensor, not float"),
    "None": (lambda value: None, " must return a scalar tensor, not NoneType"),
    "pair": (lambda value: (value, value), " must return a scalar tensor, not tuple"),
    "vector": (lambda value: value.expand(3), " must return a real scalar, not float32 [3]; nearest: its mean()"),
    "one": (lambda value: value[None], " must return a real scalar, not float32 [1]; nearest: its mean()"),
    "complex": (lambda value: torch.complex(value, value), " must return a real scalar, not complex64 []"),
}


@both
@pytest.mark.parametrize(("change", "message"), NO_SCALAR.values(), ids=NO_SCALAR.keys())
def test_a_loss_is_a_scalar(run, change, message):
    refused(run, f"loss{message}", loss=returning(change), evaluate=small.loss)
    refused(run, f"loss{message}", loss=returning(change), config=small.config(eval_every=1))
    refused(run, f"evaluate{message}", evaluate=returning(change))


@both
@pytest.mark.parametrize("change", [torch.Tensor.detach, lambda value: torch.ones(())])
def test_a_loss_depends_on_what_is_trained(run, change):
    refused(run, "loss does not depend on a parameter to train", loss=returning(change))


@both
def test_a_number_of_hits_can_be_evaluated(run):
    result = run(evaluate=lambda model, batch: (model(batch[0]) > batch[1]).sum())
    assert result.final in range(17)


@both
def test_a_loss_that_is_no_number_is_reported_and_trains_on(run):
    result = run(loss=returning(lambda value: value * float("nan")), evaluate=small.loss)
    assert np.isnan(result.losses).all()
    assert np.isnan(result.final)


def test_an_evaluation_that_fails_is_found_before_the_first_step():
    steps = []

    def loss(model, batch):
        steps.append(1)
        return small.loss(model, batch)

    refused(in_an_ensemble, "evaluate must return", loss=loss, evaluate=returning(lambda value: value[None]))
    assert len(steps) == 1
