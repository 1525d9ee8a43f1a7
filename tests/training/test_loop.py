"""The loop against torch's optimisers driven by hand, textbook updates, and its own promises."""

import os
import signal
import threading

import numpy as np
import pytest
import torch
from torch import nn

from manyheads.models import seeds
from manyheads.training import Result, engine, loop, train
from tests.training import small

OPTIMISERS = {
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1, "betas": (0.8, 0.95)},
    "sgd": {"optimizer": "sgd", "weight_decay": 0.1},
    "momentum": {"optimizer": "sgd", "momentum": 0.9},
}
every_optimiser = pytest.mark.parametrize("options", OPTIMISERS.values(), ids=OPTIMISERS.keys())


def samples(step, seed=0, n=8):
    return small.batch(seeds.generator(seed, "training", f"batch {step}"), n)


def by_hand(config, parameters, gradients_of):
    """Losses of the textbook updates, in float64: Loshchilov and Hutter's algorithm 2, and SGD with momentum."""
    first = [torch.zeros_like(p) for p in parameters]
    second = [torch.zeros_like(p) for p in parameters]
    losses = []
    for step in range(config.n_steps):
        value, gradients = gradients_of(step)
        losses.append(value)
        norm = torch.sqrt(sum((g**2).sum() for g in gradients))
        if config.clip_norm is not None and norm > config.clip_norm:
            gradients = [g * config.clip_norm / norm for g in gradients]
        rate = config.learning_rate * (1 + np.cos(np.pi * step / config.n_steps)) / 2
        for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
            if config.optimizer == "adamw":
                b1, b2 = config.betas
                m.mul_(b1).add_((1 - b1) * g)
                v.mul_(b2).add_((1 - b2) * g**2)
                corrected = (m / (1 - b1 ** (step + 1))) / ((v / (1 - b2 ** (step + 1))).sqrt() + 1e-8)
                p.data -= rate * (corrected + config.weight_decay * p.data)
            else:
                m.mul_(config.momentum).add_(g + config.weight_decay * p.data)
                p.data -= rate * m
    return losses


@every_optimiser
@pytest.mark.parametrize("clip_norm", [None, 0.05])
def test_the_loop_is_the_textbooks(options, clip_norm):
    config = small.config(dtype="float64", clip_norm=clip_norm, **options)
    model = small.model(dtype=torch.float64)
    parameters = list(model.parameters())
    norms = []

    def gradients_of(step):
        x, y = (part.double() for part in samples(step))
        value = small.loss(model, (x, y))
        gradients = torch.autograd.grad(value, parameters)
        norms.append(sum(g.square().sum() for g in gradients).sqrt().item())
        return value.item(), gradients

    expected = by_hand(config, parameters, gradients_of)
    result = train(small.model(dtype=torch.float64), small.batch, small.loss, config)
    # torch adds 1e-6 to the norm it divides by, hence the tolerance when clipping
    np.testing.assert_allclose(result.losses, expected, rtol=1e-3 if clip_norm else 1e-9)
    torch.testing.assert_close(
        small.parameters(result.model), small.parameters(model), rtol=0, atol=1e-4 if clip_norm else 1e-9
    )
    assert min(norms) > 0.05  # clipping acts in every step


@every_optimiser
def test_the_loop_is_torchs_optimiser_step_by_step(options):
    config = small.config(clip_norm=0.05, schedule="constant", **options)
    model = small.model()
    keys = {"lr": config.learning_rate, "weight_decay": config.weight_decay}
    if config.optimizer == "adamw":
        optimizer = torch.optim.AdamW(model.parameters(), betas=config.betas, **keys)
    else:
        optimizer = torch.optim.SGD(model.parameters(), momentum=config.momentum, **keys)
    losses = []
    for step in range(config.n_steps):
        optimizer.zero_grad()
        value = small.loss(model, samples(step))
        value.backward()
        assert nn.utils.clip_grad_norm_(model.parameters(), 0.05) > 0.05
        optimizer.step()
        losses.append(value.item())
    result = train(small.model(), small.batch, small.loss, config)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-4)


def test_it_learns():
    result = train(small.model(), small.batch, small.loss, small.config(n_steps=300, batch_size=32, eval_every=300))
    assert result.final < 0.1 * result.evaluations[0][1]
    assert isinstance(result, Result)
    assert result.losses.shape == (300,)
    assert result.seconds > 0


def test_same_seed_same_bits():
    runs = [train(small.model(3), small.batch, small.loss, small.config(seed=3)) for _ in range(2)]
    assert np.array_equal(runs[0].losses, runs[1].losses)
    assert torch.equal(*(small.parameters(run.model) for run in runs))
    other = train(small.model(3), small.batch, small.loss, small.config(seed=4))
    assert not np.array_equal(runs[0].losses, other.losses)


def test_samples_belong_to_their_step_and_not_to_what_was_drawn_before():
    torch.manual_seed(0)
    first = train(small.model(), small.batch, small.loss, small.config(eval_every=3))
    torch.manual_seed(1)
    torch.rand(7)
    second = train(small.model(), small.batch, small.loss, small.config())
    assert np.array_equal(first.losses, second.losses)


class Parts(nn.Module):
    """The small model with its parts registered in a chosen order."""

    def __init__(self, order):
        super().__init__()
        encoder = small.Encoder(small.SPEC)
        for name in order:
            setattr(self, name, nn.Linear(3, 3) if name == "extra" else getattr(encoder, name))


def test_seeds_go_by_name_so_order_and_company_do_not_matter():
    a = seeds.initialise(Parts(["embedding", "layers", "head"]), 5)
    b = seeds.initialise(Parts(["head", "extra", "embedding", "layers"]), 5)
    named = dict(b.named_parameters())
    assert all(torch.equal(p, named[name]) for name, p in a.named_parameters())


# --- evaluation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("every", "expected"), [(None, [12]), (5, [0, 5, 10, 12]), (6, [0, 6, 12]), (50, [0, 12])])
def test_evaluations_come_when_they_should(every, expected):
    result = train(small.model(), small.batch, small.loss, small.config(eval_every=every))
    assert [step for step, _ in result.evaluations] == expected
    assert result.best == min(result.evaluations, key=lambda pair: pair[1])
    assert result.final == result.evaluations[-1][1]


def test_held_out_data_is_drawn_once_and_apart():
    draws = []

    def held_out(generator, n):
        draws.append((generator.initial_seed(), n))
        return small.batch(generator, n)

    result = train(small.model(), small.batch, small.loss, small.config(eval_every=1), held_out=held_out)
    assert draws == [(seeds.generator(0, "training", "held out").initial_seed(), 16)]
    x, y = small.batch(seeds.generator(0, "training", "held out"), 16)
    assert result.final == pytest.approx(small.loss(result.model, (x, y)).item())


def test_what_is_evaluated_can_differ_from_the_loss():
    def largest_error(model, batch):
        assert not model.training
        assert not torch.is_grad_enabled()
        return (model(batch[0]) - batch[1]).abs().max()

    result = train(small.model(), small.batch, small.loss, small.config(), evaluate=largest_error)
    assert result.final**2 > small.loss(result.model, samples(0)).item()


def test_the_best_ignores_what_is_no_number():
    result = train(small.model(), small.batch, small.loss, small.config(eval_every=4))
    broken = Result(
        result.model,
        result.losses,
        ((0, float("nan")), (4, 2.0), (8, 1.0), (12, float("inf"))),
        0,
        False,
        small.config(),
    )
    assert broken.best == (8, 1.0)


# --- interrupts, checkpoints ----------------------------------------------------------------------------------------


def interrupting(at):
    """A loss that interrupts the process, as Ctrl-C does, at its call number ``at``."""
    calls = []

    def loss(model, batch):
        calls.append(1)
        if len(calls) == at:
            signal.raise_signal(signal.SIGINT)
        return small.loss(model, batch)

    return loss


def test_an_interrupt_leaves_the_last_complete_step():
    whole = train(small.model(), small.batch, small.loss, small.config(stop_after=6))
    result = train(small.model(), small.batch, interrupting(7), small.config(eval_every=3), evaluate=small.loss)
    assert result.interrupted
    assert not whole.interrupted
    assert result.n_steps == 6
    assert np.array_equal(result.losses, whole.losses)
    assert torch.equal(small.parameters(result.model), small.parameters(whole.model))
    assert [step for step, _ in result.evaluations] == [0, 3, 6]


def test_an_interrupt_at_once_still_gives_a_result():
    result = train(small.model(), small.batch, interrupting(1), small.config())
    assert result.interrupted
    assert result.losses.shape == (0,)
    assert result.evaluations == ()
    assert np.isnan(result.final)
    assert result.best[0] == 0


def test_an_interrupt_never_splits_an_update(monkeypatch):
    whole = train(small.model(), small.batch, small.loss, small.config(stop_after=4))
    update = loop.Single.update

    def interrupted(self, step):
        if step == 3:
            os.kill(os.getpid(), signal.SIGINT)
        update(self, step)

    monkeypatch.setattr(loop.Single, "update", interrupted)
    result = train(small.model(), small.batch, small.loss, small.config())
    assert result.interrupted
    assert result.n_steps == 4
    assert torch.equal(small.parameters(result.model), small.parameters(whole.model))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_train_too():
    results = []
    thread = threading.Thread(
        target=lambda: results.append(train(small.model(), small.batch, small.loss, small.config()))
    )
    thread.start()
    thread.join()
    assert results[0].n_steps == 12


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    config = small.config(eval_every=5, checkpoint=str(tmp_path / "c"))
    whole = train(small.model(), small.batch, small.loss, small.config(eval_every=5))
    stopped = train(small.model(), small.batch, interrupting(8), config, evaluate=small.loss)
    resumed = train(small.model(seed=9), small.batch, small.loss, config)
    assert (stopped.n_steps, stopped.interrupted, resumed.interrupted) == (7, True, False)
    assert np.array_equal(resumed.losses, whole.losses)
    assert resumed.evaluations == whole.evaluations
    assert torch.equal(small.parameters(resumed.model), small.parameters(whole.model))
    assert resumed.seconds > stopped.seconds


def test_a_finished_run_is_not_run_again(tmp_path):
    config = small.config(checkpoint=str(tmp_path / "c"))
    done = train(small.model(), small.batch, small.loss, config)
    again = train(small.model(seed=9), small.batch, None, config, evaluate=small.loss)
    assert np.array_equal(again.losses, done.losses)
    assert torch.equal(small.parameters(again.model), small.parameters(done.model))


@every_optimiser
def test_stopping_early_keeps_the_schedule_and_can_be_taken_up(options, tmp_path):
    options = options | {"eval_every": 5}
    whole = train(small.model(), small.batch, small.loss, small.config(**options))
    where = {"checkpoint": str(tmp_path / "c")}
    for stop in (1, 5, 7, 12):
        result = train(small.model(), small.batch, small.loss, small.config(stop_after=stop, **where, **options))
        assert np.array_equal(result.losses, whole.losses[:stop])
        assert result.evaluations == tuple(pair for pair in whole.evaluations if pair[0] <= stop)
    assert torch.equal(small.parameters(result.model), small.parameters(whole.model))


# --- devices, quiet -------------------------------------------------------------------------------------------------


def test_everything_goes_to_the_device():
    one = loop.Single(small.model(), small.batch, small.loss, small.config(device="meta"), small.batch, small.loss)
    assert one.gradients(0).is_meta
    assert {p.grad.device.type for p in one.parameters} == {"meta"}
    one.update(0)
    assert one.evaluate().is_meta


def test_a_stray_tensor_is_noticed():
    stray = torch.zeros(6)

    def loss(model, batch):
        return small.loss(model, batch) + (model.class_token * stray).sum()

    one = loop.Single(small.model(), small.batch, loss, small.config(device="meta"), small.batch, small.loss)
    with pytest.raises(RuntimeError, match="device"):
        one.gradients(0)


def test_whole_numbers_keep_their_type():
    batch = (torch.zeros(2, dtype=torch.float64), [torch.ones(2, dtype=torch.int64)])
    x, (tokens,) = engine.place(batch, torch.device("cpu"), torch.float32)
    assert (x.dtype, tokens.dtype) == (torch.float32, torch.int64)


def test_a_batch_must_be_tensors():
    with pytest.raises(ValueError, match="batch must return a tensor or a tuple of tensors, not dict"):
        train(small.model(), lambda generator, n: {"x": 1}, small.loss, small.config())


def test_stored_output_stays_quiet(monkeypatch, capfd):
    monkeypatch.setattr(engine, "SECONDS_BETWEEN_LOOKS", 0)
    right = engine.progress
    monkeypatch.setattr(engine, "progress", lambda *a, **k: right(*a, **k, delay=0))
    monkeypatch.setenv("MANYHEADS_EXPLORE", "static")
    train(small.model(), small.batch, small.loss, small.config())
    assert capfd.readouterr() == ("", "")
    monkeypatch.delenv("MANYHEADS_EXPLORE")
    train(small.model(), small.batch, small.loss, small.config(n_steps=200))
    shown = capfd.readouterr().err
    assert "training" in shown
    assert "loss 0." in shown


def test_frozen_parameters_stay():
    model = small.model()
    model.embedding.requires_grad_(False)
    before = model.embedding.weight.clone()
    train(model, small.batch, small.loss, small.config(weight_decay=0.5, clip_norm=1.0))
    assert torch.equal(model.embedding.weight, before)
