"""What trains together to the numbers of the loop, and what is refused because it would not."""

import copy
import re
from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize

from manyheads.models import Encoder, EncoderSpec, seeds
from manyheads.training import ensemble, train
from tests.training import small
from tests.training.test_ensemble import DOUBLE, assert_same, both, members

DOUBLES = {"dtype": torch.float64}
HEADS = [EncoderSpec(1, 1, 8, (heads,)) for heads in (2, 4)]


class Read(nn.Module):
    """A linear map of four numbers, after or before whatever a test puts around it."""

    def __init__(self, seed=0, **attributes):
        super().__init__()
        self.read = nn.Linear(4, 1, **DOUBLES)
        seeds.initialise(self, seed)
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x):
        return self.read(x.flatten(1))


def together(models, **options):
    return ensemble.train(models, small.batch, small.loss, members(len(models), **DOUBLE, **options))


def refused(models, *parts):
    """Check that models are refused with all these words, and that none of them has changed."""
    before = [copy.deepcopy(model.state_dict()) for model in models]
    with pytest.raises(ValueError, match=".*".join(map(re.escape, parts))):
        together(models)
    for model, state in zip(models, before, strict=True):
        assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


# --- tied tensors ---------------------------------------------------------------------------------------------------


class TiedTokens(nn.Module):
    """A language model in small: the embedding is also the output, and one block is used twice."""

    def __init__(self, seed):
        super().__init__()
        self.embedding = nn.Embedding(5, 4, **DOUBLES)
        self.block = nn.Linear(4, 4, **DOUBLES)
        self.again = self.block
        self.output = nn.Linear(4, 5, **DOUBLES)
        seeds.initialise(self, seed)
        self.output.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor(1.0 + seed, **DOUBLES))
        self.register_buffer("scale_too", self.scale)

    def forward(self, tokens):
        return self.output(self.again(self.block(self.embedding(tokens)).tanh()) * self.scale * self.scale_too)


def tokens(generator, n):
    return torch.randint(5, (n, 3), generator=generator)


def next_token(model, batch):
    return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


def test_tied_tensors_train_as_one(tmp_path):
    configs = members(3, weight_decay=0.3, clip_norm=1.0, eval_every=5, **DOUBLE)
    results, apart = both(configs, TiedTokens, tokens, next_token)
    assert_same(results, apart)
    for result in results:
        assert result.model.output.weight is result.model.embedding.weight
        assert result.model.scale_too is result.model.scale
    part = [replace(config, checkpoint=str(tmp_path / "c"), stop_after=7) for config in configs]
    ensemble.train(TiedTokens, tokens, next_token, part)
    resumed = ensemble.train(TiedTokens, tokens, next_token, [replace(config, stop_after=None) for config in part])
    for whole, result in zip(results, resumed, strict=True):
        assert np.array_equal(whole.losses, result.losses)


def test_the_template_stays_tied_and_holds_nothing():
    models = [TiedTokens(seed) for seed in range(2)]
    stacked = ensemble.Stacked(models, tokens, next_token, members(2, **DOUBLE), tokens, next_token)
    stacked.gradients(0)
    assert stacked.template.output.weight is stacked.template.embedding.weight
    assert {t.device.type for t in [*stacked.template.parameters(), *stacked.template.buffers()]} == {"meta"}


def test_tied_buffers_may_come_apart_on_another_device():
    class Moved(TiedTokens):
        def to(self, device):  # as torch moves buffers: each by itself
            self.scale_too = self.scale.clone()
            return super().to(device)

    assert_same(*both(members(2, **DOUBLE), Moved, tokens, next_token))


class Kept(Read):
    """Keeps its weight outside its place, where no pass can put a member's own."""

    def __init__(self, seed, keep):
        super().__init__(seed)
        self.kept = keep(self.read)

    def forward(self, x):
        return super().forward(x) + x.flatten(1) @ self.kept()[0]


HIDDEN = {
    "list": lambda read: [read.weight].copy,
    "closure": lambda read: lambda: read.weight,
    "module's closure": lambda read: lambda: next(iter(read.parameters())),
}


@pytest.mark.parametrize("keep", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_tensor_that_no_member_can_replace_is_refused_when_it_is_used(keep):
    refused([Kept(seed, keep) for seed in range(2)], "a forward pass uses 'read.weight' by another way")


def test_a_tensor_kept_elsewhere_and_not_used_is_no_harm():
    models = [Read(seed) for seed in range(2)]
    for model in models:
        model.all = list(model.parameters())
    assert_same(together(models), together([Read(seed) for seed in range(2)]))


def test_evaluation_is_watched_too():
    class Evaluated(Kept):
        def forward(self, x):
            return Read.forward(self, x) if self.training else super().forward(x)

    refused([Evaluated(seed, HIDDEN["closure"]) for seed in range(2)], "a forward pass uses 'read.weight'")


# --- structure ------------------------------------------------------------------------------------------------------


def test_heads_that_need_the_same_shapes_do_not_train_together():
    models = [seeds.initialise(Encoder(spec, **DOUBLES), 0) for spec in HEADS]
    refused(models, "models[1] has ", "n_heads = 4, models[0] 2; ", "train them apart")


def with_eps(eps):
    return nn.Sequential(nn.Flatten(), nn.LayerNorm(4, eps=eps, **DOUBLES), nn.Linear(4, 1, **DOUBLES))


def frozen(name):
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 4, **DOUBLES), nn.Linear(4, 4, **DOUBLES))
    model.get_submodule(name).requires_grad_(False)
    return model


def weights_tied(name):
    model = nn.Module()
    model.a, model.b, model.c = (nn.Linear(4, 4, **DOUBLES) for _ in range(3))
    model.get_submodule(name).weight = model.a.weight
    return model


def buffered(dtype):
    model = Read()
    model.register_buffer("scale", torch.ones((), dtype=dtype))
    return model


DIFFERENT = {
    "eps": ([with_eps(1e-5), with_eps(1e-2)], "models[1] has 1.eps = 0.01, models[0] 1e-05"),
    "slope": ([Read(act=nn.LeakyReLU(k)) for k in (0.1, 0.2)], "models[1] has act.negative_slope = 0.2, models[0] 0.1"),
    "class": ([Read(act=nn.GELU()), Read(act=nn.ReLU())], "models[1] has act.__class__ = "),
    "number": ([Read(scale=k) for k in (1, 1, 2)], "models[2] has scale = 2, models[0] 1"),
    "presence": ([Read(), Read(mask=True)], "models[1] has mask = True, models[0] nothing"),
    "tensor": ([Read(scale=torch.tensor(k)) for k in (1, 2)], "models[1] has scale = tensor(2), models[0] tensor(1)"),
    "unregistered": ([Read(parts=[nn.Linear(1, 1)]) for _ in range(2)], "models[1] has parts[0].weight = "),
    "frozen": ([frozen("1"), frozen("2")], "models[1] has '1.weight' of shape [4, 4] (float64, trained), models[0]"),
    "ties": (list(map(weights_tied, "bc")), "models[1] has 'b.weight' of shape [4, 4] (float64, trained), models[0] "),
    "buffer": ([buffered(torch.float64), buffered(torch.int64)], "models[1] has 'scale' of shape [] (int64, fixed)"),
}


@pytest.mark.parametrize(("models", "message"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_members_of_another_structure_are_named(models, message):
    refused(models, message, "train them apart")


def test_rows_go_by_name_where_parts_are_registered_in_another_order():
    class Ordered(nn.Module):
        def __init__(self, *order):
            super().__init__()
            for name in order:
                setattr(self, name, nn.Linear(4, 4, **DOUBLES))

    refused([Ordered("a", "b"), Ordered("b", "a")], "models[1] has ")


def test_mode_gradients_and_cached_properties_are_no_difference():
    class Cached(Read):
        @cached_property
        def signs(self):
            return self.read.weight.detach().sign()

        def forward(self, x):
            return super().forward(x) if self.training else super().forward(x).square()

    def make(seed):
        model = Cached(seed)
        if seed:
            model.eval()
            small.loss(model, (torch.ones(2, 4, 1, **DOUBLES), torch.ones(2, 1, **DOUBLES))).backward()
            assert model.signs.shape == (1, 4)
        return model

    assert_same(*both(members(2, eval_every=4, **DOUBLE), make))


def test_parametrised_modules_train_together():
    def make(seed):
        model = Read(seed)
        parametrize.register_parametrization(model.read, "weight", nn.Tanh())
        return model

    assert_same(*both(members(2, **DOUBLE), make))


# --- memory ---------------------------------------------------------------------------------------------------------


def sharing(name):
    first, second = Read(0), Read(1)
    setattr(second.read, name, getattr(first.read, name))
    return [first, second]


def viewing():
    model = Read()
    model.tail = nn.Parameter(model.read.weight.data[0, 2:])
    return model


def shared_statistics():
    first, second = (nn.Sequential(nn.Flatten(), nn.BatchNorm1d(4, **DOUBLES)) for _ in range(2))
    second[1].running_mean = first[1].running_mean
    return [first, second]


one = Read()
SHARED = {
    "one model twice": ([one, one], ["of models[0] and 'read.", "of models[1] share memory"]),
    "a parameter": (sharing("bias"), ["'read.bias' of models[0] and 'read.bias' of models[1] share memory"]),
    "a view": ([viewing()], ["'read.weight' of models[0] and 'tail' of models[0] share memory"]),
    "a buffer": (shared_statistics(), ["'1.running_mean' of models[0] and '1.running_mean' of models[1] share"]),
}


@pytest.mark.parametrize(("models", "words"), SHARED.values(), ids=SHARED.keys())
def test_members_that_share_memory_are_named(models, words):
    refused(models, *words, "copy.deepcopy")


def test_parts_of_one_storage_that_do_not_meet_are_no_harm():
    def make(seed):
        model = Read(seed)
        storage = torch.cat([model.read.weight.detach().flatten(), model.read.bias.detach()])
        model.read.weight.data, model.read.bias.data = storage[:4].view(1, 4), storage[4:]
        return model

    assert_same(*both(members(2, **DOUBLE), make))


def test_members_may_share_what_is_frozen():
    backbone = nn.Linear(4, 4, **DOUBLES).requires_grad_(False)

    class Headed(Read):
        def __init__(self, seed):
            super().__init__(seed)
            self.backbone = backbone

        def forward(self, x):
            return super().forward(self.backbone(x.flatten(1)))

    assert_same(*both(members(2, **DOUBLE), Headed))


# --- models that cannot be trained, or live elsewhere ---------------------------------------------------------------


def test_lazy_modules_must_have_been_called():
    model = nn.Sequential(nn.Flatten(), nn.LazyLinear(1, **DOUBLES))
    with pytest.raises(ValueError, match=r"parameter '1\.weight' has no shape yet; call the model on samples first"):
        together([model])
    model(torch.zeros(1, 4, **DOUBLES))
    assert together([model])[0].n_steps == 12


def test_a_model_that_cannot_be_copied_is_refused():
    model = Read()
    model.product = model.read.weight * 2
    refused([model], "models[0] cannot be copied")


def test_a_scripted_model_is_refused():
    refused([torch.jit.script(Read())], "models[0] is compiled by torch.jit; nearest: the module it was made from")


def test_members_may_come_from_different_devices():
    models = [small.model(), small.model().to("meta")]
    configs = members(2, device="meta")
    stacked = ensemble.Stacked(models, small.batch, small.loss, configs, small.batch, small.loss)
    assert stacked.flat.is_meta


@pytest.mark.parametrize(
    ("make_model", "message"),
    [
        (small.model(), "make_model must be a function of a seed, or a list of models, not one model"),
        (lambda seed: None, "models[0] must be a torch.nn.Module, not NoneType"),
        ([small.model(), small.model().requires_grad_(False)], "models[1] has no parameter to train: 23 in all"),
        ([small.model(), small.model().to("meta")], "'class_token' of models[1] is on the meta device"),
    ],
)
def test_what_is_no_model_to_train_is_named(make_model, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ensemble.train(make_model, small.batch, small.loss, members(2))


def test_a_list_of_modules_may_be_torchs():
    models = nn.ModuleList(Read(seed) for seed in range(2))
    assert_same(together(models), [train(Read(c.seed), small.batch, small.loss, c) for c in members(2, **DOUBLE)])
