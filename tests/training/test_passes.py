"""What a forward pass of an ensemble may do: batch normalisation and caches, and what it may not."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from manyheads.models import seeds
from manyheads.training import ensemble
from tests.training import small
from tests.training.test_ensemble import DOUBLE, assert_same, both, members
from tests.training.test_membership import DOUBLES, Read, refused


class Normalised(nn.Module):
    def __init__(self, seed, **options):
        super().__init__()
        self.norm = nn.BatchNorm1d(4, **DOUBLES, **options)
        self.read = nn.Linear(4, 1, **DOUBLES)
        seeds.initialise(self, seed)

    def forward(self, x):
        return self.read(self.norm(x.flatten(1)))


@pytest.mark.parametrize("per_pass", [1, 2, None])
@pytest.mark.parametrize("options", [{}, {"affine": False}, {"track_running_stats": False}], ids=str)
def test_batch_normalisation_gives_the_numbers_of_the_loop(options, per_pass, monkeypatch):
    if per_pass:
        monkeypatch.setattr(ensemble.Stacked, "_members_per_pass", lambda self: per_pass)
    configs = members(3, eval_every=4, **DOUBLE)
    results, apart = both(configs, lambda seed: Normalised(seed, **options))
    assert_same(results, apart)
    for result, alone in zip(results, apart, strict=True):
        for name, buffer in alone.model.named_buffers():
            torch.testing.assert_close(result.model.get_buffer(name), buffer, rtol=0, atol=1e-12)
        assert result.model.training == alone.model.training


def test_finding_out_how_many_fit_a_pass_moves_nothing():
    models = [Normalised(seed) for seed in range(2)]
    stacked = ensemble.Stacked(models, small.batch, small.loss, members(2, **DOUBLE), small.batch, small.loss)
    assert stacked.fixed["norm.num_batches_tracked"].tolist() == [0, 0]
    assert not stacked.fixed["norm.running_mean"].any()
    assert torch.equal(stacked.flat[0], small.parameters(models[0]))
    stacked.gradients(0)
    assert stacked.fixed["norm.num_batches_tracked"].tolist() == [1, 1]


class Noisy(Read):
    def forward(self, x):
        return super().forward(F.dropout(x, self.p, self.training))


def test_dropout_is_refused_before_the_first_step_unless_it_drops_nothing():
    refused([Noisy(seed, p=0.5) for seed in range(2)], "one pass over all members", "random", "train them one by one")
    assert_same(*both(members(2, eval_every=4, **DOUBLE), lambda seed: Noisy(seed, p=0.0)))


class Doing(Read):
    """Does something when it is called, before it answers."""

    def __init__(self, act, seed=0, **attributes):
        super().__init__(seed, **attributes)
        self.act = act
        self.register_buffer("mean", torch.zeros(4, **DOUBLES))

    def forward(self, x):
        self.act(self, x.flatten(1))
        return super().forward(x)


def reassign(model, x):
    model.mean = model.mean + x.detach().mean(0)


def count(model, x):
    model.calls += 1


def remember(model, x):
    model.last = x.detach() * model.read.weight.detach()


def register(model, x):
    model.register_buffer("new", x.detach()[0])


def branch(model, x):
    if x.sum() > 0:
        model.mean.zero_()


def normalise_all(model, x):
    F.batch_norm(x, torch.zeros(4, **DOUBLES), torch.ones(4, **DOUBLES), training=True)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (reassign, "puts another tensor in the place of 'mean'"),
        (count, "a forward pass changes calls, which all members"),
        (remember, "a forward pass changes last, which all members"),
        (register, "a forward pass changes new, which all members"),
        (branch, "one pass over all members cannot run this loss: "),
        (normalise_all, "one pass over all members cannot run this loss: "),
    ],
)
def test_what_a_pass_over_all_members_would_do_to_all_is_refused(act, message):
    refused([Doing(act, seed, calls=0) for seed in range(2)], message, "one by one")


def test_a_cache_that_a_pass_fills_is_no_harm():
    def table(model, x):
        if model.table is None:
            model.table = torch.arange(x.shape[-1]).to(x)
        model.mean.add_(model.table)

    def make(seed):
        return Doing(table, seed, table=None)

    results, apart = both(members(3, **DOUBLE), make)
    assert_same(results, apart)
    assert torch.equal(results[2].model.mean, apart[2].model.mean)


def test_a_loss_that_looks_into_the_module_is_refused():
    def penalised(model, batch):
        return small.loss(model, batch) + sum(p.square().sum() for p in model.parameters())

    with pytest.raises(ValueError, match=r"one pass over all members cannot run this loss: .*'parameters'; train them"):
        ensemble.train(Read, small.batch, penalised, members(2, **DOUBLE))
