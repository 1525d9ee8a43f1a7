"""The ensemble against the loop over its members, with clipping in action."""

import re
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from manyheads.models import EncoderSpec, seeds
from manyheads.training import DamagedCheckpoint, ensemble, loop, train
from tests.training import small

OPTIMISERS = {
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1, "betas": (0.8, 0.95)},
    "sgd": {"optimizer": "sgd", "learning_rate": 0.1},
    "momentum": {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.01},
}
every_optimiser = pytest.mark.parametrize("options", OPTIMISERS.values(), ids=OPTIMISERS.keys())
DOUBLE = {"dtype": "float64"}


def members(n=4, **options):
    config = small.config(**options)
    return [replace(config, seed=seed) for seed in range(n)]


def double(seed):
    return small.model(seed, dtype=torch.float64)


def both(configs, make_model=double, batch=small.batch, loss=small.loss, **options):
    together = ensemble.train(make_model, batch, loss, configs, **options)
    apart = [train(make_model(config.seed), batch, loss, config, **options) for config in configs]
    return together, apart


def assert_same(together, apart, tolerance=1e-11):
    """Equal losses. Parameters less strictly: those that change nothing, as key biases do, get steps of the size of
    rounding errors relative to 1e-8, AdamW's epsilon.
    """
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_allclose(a.losses, b.losses, rtol=0, atol=tolerance)
        np.testing.assert_allclose(a.evaluations, b.evaluations, rtol=0, atol=tolerance)
        torch.testing.assert_close(small.parameters(a.model), small.parameters(b.model), rtol=0, atol=100 * tolerance)
        assert (a.config, a.interrupted) == (b.config, b.interrupted)


@every_optimiser
def test_it_gives_the_numbers_of_the_loop_with_clipping_in_action(options, monkeypatch):
    lengths = []
    right = nn.utils.clip_grad_norm_

    def watched(parameters, largest):
        length = right(parameters, largest)
        lengths.append(length.item() / largest)
        return length

    monkeypatch.setattr(loop.nn.utils, "clip_grad_norm_", watched)
    configs = members(clip_norm=3.0, eval_every=5, warmup=3, **DOUBLE, **options)
    together, apart = both(configs)
    assert_same(together, apart)
    assert len(lengths) == 4 * 12
    assert sum(length > 2 for length in lengths) >= 5  # gradients were cut to less than half,
    assert sum(length < 1 for length in lengths) > 0  # and some were left alone
    without = ensemble.train(double, small.batch, small.loss, [replace(c, clip_norm=None) for c in configs])
    assert all(np.abs(a.losses - b.losses).max() > 1e-4 for a, b in zip(together, without, strict=True))


@every_optimiser
def test_settings_that_share_shapes_train_together(options):
    first, *_ = members(**DOUBLE, **options)
    configs = [
        first,
        replace(first, seed=1),  # a group of two with the one before
        replace(first, learning_rate=0.1, clip_norm=0.05),
        replace(first, weight_decay=0.5, warmup=0.5),
        replace(first, seed=2, schedule="constant", clip_norm=1e-3),
        replace(first, final=0.5),
        replace(first, momentum=0.5) if first.optimizer == "sgd" else replace(first, betas=(0.5, 0.9)),
        first,
    ]
    together, apart = both(configs)
    assert_same(together, apart)
    assert len({round(result.losses[-1], 9) for result in together}) == len(configs) - 1  # the last is the first


MODELS = {
    "plain": EncoderSpec(1, 1, 4, (1,)),
    "two-layers": EncoderSpec(1, 1, 4, (2, 1), d_head=3, norm=True, bias=True, embedding="mlp"),
    "rope": EncoderSpec(1, 1, 4, (2,), position="rope", ffn="swiglu"),
    "alibi": EncoderSpec(1, 1, 4, (2,), position="alibi", ffn="bilinear"),
}


@pytest.mark.parametrize("spec", MODELS.values(), ids=MODELS.keys())
def test_every_kind_of_encoder_trains_without_a_warning(spec):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(*both(members(2, **DOUBLE), lambda seed: small.model(seed, spec, torch.float64)))


def test_single_precision_agrees_to_rounding():
    assert_same(*both(members(clip_norm=0.1), small.model), tolerance=1e-4)


@pytest.mark.parametrize("per_pass", [1, 2, 3, 4])
def test_the_number_of_members_in_a_pass_does_not_matter(per_pass, monkeypatch):
    configs = members(clip_norm=0.1, eval_every=5, **DOUBLE)
    whole = ensemble.train(double, small.batch, small.loss, configs)
    monkeypatch.setattr(ensemble.Stacked, "_members_per_pass", lambda self: per_pass)
    assert_same(ensemble.train(double, small.batch, small.loss, configs), whole)


def test_a_pass_holds_what_the_cache_holds(monkeypatch):
    def per_pass():
        stacked = ensemble.Stacked(
            [small.model() for _ in range(4)], small.batch, small.loss, members(), *[small.batch] * 2
        )
        return stacked.per_pass

    assert per_pass() == 4
    monkeypatch.setattr(ensemble, "CACHE_BYTES", 1)
    assert per_pass() == 1


def test_one_member_is_an_ensemble_too():
    assert_same(*both(members(1, **DOUBLE)))


def test_members_meet_nowhere():
    alone = ensemble.train(double, small.batch, small.loss, members(3, **DOUBLE))
    configs = members(4, **DOUBLE)
    configs[3] = replace(configs[3], learning_rate=1e30, optimizer="adamw")  # its numbers overflow
    crowd = ensemble.train(double, small.batch, small.loss, configs)
    assert_same(crowd[:3], alone)
    assert not np.isfinite(crowd[3].losses[-1]) or crowd[3].losses[-1] > 1e10


def test_without_clipping_a_gradient_may_be_longer_than_any_number():
    def steep(model, batch):
        return 1e25 * small.loss(model, batch)

    with_norm, without_norm = members(2, stop_after=3, clip_norm=1.0), members(2, stop_after=3)
    results = ensemble.train(small.model, small.batch, steep, [with_norm[0], without_norm[1]])
    assert np.isfinite(results[1].losses).all()
    np.testing.assert_allclose(
        results[1].losses, train(small.model(1), small.batch, steep, without_norm[1]).losses, rtol=1e-4
    )


def test_modules_are_trained_in_place():
    models = [double(seed) for seed in range(3)]
    results = ensemble.train(models, small.batch, small.loss, members(3, **DOUBLE))
    assert [result.model for result in results] == models
    assert_same(results, ensemble.train(double, small.batch, small.loss, members(3, **DOUBLE)))


class Scaled(nn.Module):
    """A model with a frozen parameter and a buffer, different in every member."""

    def __init__(self, seed):
        super().__init__()
        self.encoder = double(seed)
        self.encoder.embedding.requires_grad_(False)
        self.register_buffer("scale", torch.tensor(1.0 + seed, dtype=torch.float64))

    def forward(self, x):
        return self.scale * self.encoder(x)


def test_buffers_and_frozen_parameters_are_every_members_own(tmp_path):
    configs = members(3, weight_decay=0.3, **DOUBLE)
    together, apart = both(configs, Scaled)
    assert_same(together, apart)
    for seed, result in enumerate(together):
        assert result.model.scale == 1 + seed
        assert torch.equal(result.model.encoder.embedding.weight, double(seed).embedding.weight)


def test_samples_are_drawn_once_per_seed():
    drawn = []

    def batch(generator, n):
        drawn.append((generator.initial_seed(), n))
        return small.batch(generator, n)

    configs = [small.config(n_steps=1, seed=seed, learning_rate=rate) for rate in (0.1, 0.2, 0.3) for seed in (5, 6)]
    stacked = ensemble.Stacked([small.model() for _ in configs], batch, small.loss, configs, batch, small.loss)
    drawn.clear()
    stacked.gradients(0)
    assert drawn == [(seeds.generator(seed, "training", "batch 0").initial_seed(), 8) for seed in (5, 6)]


def test_targets_can_be_computed_with_the_loss_and_samples_be_one_tensor():
    def tokens(generator, n):
        return torch.rand(n, 4, 1, generator=generator)

    def loss(model, x):
        return F.mse_loss(model(x), x.topk(2, dim=1).values[:, 1])

    together, apart = both(members(**DOUBLE), batch=tokens, loss=loss)
    assert_same(together, apart)
    assert_same(together, ensemble.train(double, small.batch, small.loss, members(**DOUBLE)), tolerance=1e-7)


def test_evaluations_are_every_members_own():
    def largest_error(model, batch):
        return (model(batch[0]) - batch[1]).abs().max()

    assert_same(*both(members(eval_every=4, **DOUBLE), held_out=lambda g, n: small.batch(g, 3), evaluate=largest_error))


def test_short_rows_are_torchs_attention():
    q, k, v = (torch.randn(2, 3, 5, 4, dtype=torch.float64, generator=seeds.generator(0, n)) for n in "qkv")
    mask = torch.rand(5, 5, generator=seeds.generator(0, "mask")) < 0.7
    mask.fill_diagonal_(True)
    for options in ({}, {"is_causal": True}, {"attn_mask": mask}, {"scale": 0.1}, {"enable_gqa": False}):
        expected = F.scaled_dot_product_attention(q, k, v, **options)
        with ensemble.ShortRows():
            torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, **options), expected)


# --- interrupts, checkpoints, devices -------------------------------------------------------------------------------


def interrupting(at):
    calls = []

    def loss(model, batch):
        calls.append(1)
        if len(calls) == at:
            signal.raise_signal(signal.SIGINT)
        return small.loss(model, batch)

    return loss


def test_an_interrupted_ensemble_goes_on_where_it_stopped(tmp_path):
    configs = members(clip_norm=0.1, eval_every=5)
    saved = [replace(config, checkpoint=str(tmp_path / "c")) for config in configs]
    whole = ensemble.train(small.model, small.batch, small.loss, configs)
    # the first call finds out how many members fit a pass
    stopped = ensemble.train(small.model, small.batch, interrupting(9), saved, evaluate=small.loss)
    assert {(result.n_steps, result.interrupted) for result in stopped} == {(7, True)}
    for a, b in zip(stopped, whole, strict=True):
        assert np.array_equal(a.losses, b.losses[:7])
    resumed = ensemble.train(lambda seed: small.model(seed + 9), small.batch, small.loss, saved)
    for a, b in zip(resumed, whole, strict=True):
        assert np.array_equal(a.losses, b.losses)
        assert a.evaluations == b.evaluations
        assert torch.equal(small.parameters(a.model), small.parameters(b.model))


def test_a_checkpoint_of_another_ensemble_is_refused(tmp_path):
    where = {"checkpoint": str(tmp_path / "c")}
    ensemble.train(small.model, small.batch, small.loss, members(2, **where))
    with pytest.raises(DamagedCheckpoint, match="it holds 2 models, not 3"):
        ensemble.train(small.model, small.batch, small.loss, members(3, **where))
    with pytest.raises(DamagedCheckpoint, match=r"its rows has shape \[2, \d+\], the model's \[2, \d+\]"):
        ensemble.train(lambda seed: small.model(spec=MODELS["rope"]), small.batch, small.loss, members(2, **where))


def test_everything_goes_to_the_device():
    configs = members(device="meta", clip_norm=1.0)
    models = [small.model() for _ in configs]
    stacked = ensemble.Stacked(models, small.batch, small.loss, configs, small.batch, small.loss)
    assert stacked.gradients(0).is_meta
    assert stacked.gradient.is_meta
    stacked.update(0)
    assert stacked.evaluate().shape == (4,)


class Reserved(nn.Module):
    """A model that answers otherwise when it is evaluated."""

    def __init__(self, seed):
        super().__init__()
        self.encoder = double(seed)

    def forward(self, x):
        return self.encoder(x) if self.training else 2 * self.encoder(x)


def test_models_are_told_whether_they_train():
    assert_same(*both(members(2, eval_every=5, **DOUBLE), Reserved))


def test_the_template_has_no_weights_of_its_own():
    models = [small.model() for _ in range(4)]
    stacked = ensemble.Stacked(models, small.batch, small.loss, members(), small.batch, small.loss)
    assert {p.device.type for p in stacked.template.parameters()} == {"meta"}
    assert {p.device.type for model in models for p in model.parameters()} == {"cpu"}


# --- bad arguments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([], "configs must be a sequence of one TrainConfig per member; nearest: [config]"),
        (small.config(), "configs must be a sequence of one TrainConfig per member; nearest: [config]"),
        ([small.config(), small.config(n_steps=5)], "configs must share n_steps, not 12, 5; train them apart"),
        ([small.config(), small.config(optimizer="sgd")], "configs must share optimizer, not 'adamw', 'sgd'"),
        ([small.config(dtype="auto")], "dtype='auto' is not for ensembles of small models; nearest: 'float32'"),
        ([small.config(dtype="float64")] * 2, "'class_token' is float32, but dtype trains float64"),
    ],
)
def test_bad_configs_are_named(configs, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ensemble.train(small.model, small.batch, small.loss, configs)


def test_members_of_different_shapes_are_named():
    models = [small.model(), small.model(spec=replace(small.SPEC, d_ff=9))]
    with pytest.raises(ValueError, match=r"models\[1\] has 'layers.0.feedforward.up_proj.weight' of shape \[9, 6\]"):
        ensemble.train(models, small.batch, small.loss, members(2))
    with pytest.raises(ValueError, match="holds 2 models for 3 configs; give one per config"):
        ensemble.train(models, small.batch, small.loss, members(3))
