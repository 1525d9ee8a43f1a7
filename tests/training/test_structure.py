"""What makes two modules different, beside the numbers in their tensors."""

import random
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parametrizations

from manyheads.models import AttentionSpec
from manyheads.training.structure import NOTHING, differences, slots, tied


class Holder(nn.Module):
    def __init__(self, value=None):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.value = value


def paths(first, second):
    return [difference.path for difference in differences(first, second)]


@dataclass(frozen=True)
class Options:
    size: int
    names: tuple = ()


class Slotted:
    __slots__ = ("size",)

    def __init__(self, size):
        self.size = size


class Opaque:
    def __init__(self, size):
        self.size = size


def scaled(by):
    return lambda x: by * x


def local_class(by):
    class Local(nn.Module):
        def forward(self, x):
            return by * x

    return Local()


VALUES = {
    "number": lambda k: k,
    "nan or number": lambda k: float("nan") if k == 2 else 1.0,
    "text": lambda k: "ab"[:k],
    "list": lambda k: [1, [k]],
    "dict": lambda k: {"a": {k: 1}},
    "set": lambda k: {k, 3},
    "spec": lambda k: AttentionSpec(d_model=4, n_heads=k),
    "dataclass": lambda k: Options(1, ("a", k)),
    "slots": Slotted,
    "object": lambda k: Opaque([k]),
    "array": lambda k: np.array([1.0, k]),
    "scalar": np.float32,
    "fraction": lambda k: Fraction(1, k),
    "tensor": lambda k: torch.tensor([float("nan"), k]),
    "dtype": lambda k: [torch.float32, torch.float64][k - 1],
    "function": lambda k: [F.gelu, F.relu][k - 1],
    "partial": lambda k: partial(F.leaky_relu, negative_slope=k),
    "lambda": scaled,
    "default": lambda k: lambda x, by=k: by * x,
    "class": lambda k: [nn.GELU, nn.ReLU][k - 1],
    "module": lambda k: nn.LeakyReLU(k),
    "random": lambda k: random.Random(k),
    "generator": lambda k: np.random.default_rng(k),
    "local class": local_class,
}


@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES.keys())
def test_equal_values_are_alike_and_others_are_not(make):
    assert paths(Holder(make(1)), Holder(make(1))) == []
    assert paths(Holder(make(2)), Holder(make(2))) == []
    different = paths(Holder(make(1)), Holder(make(2)))
    assert {path.partition(".")[0].partition("[")[0] for path in different} == {"value"}


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


@settings(deadline=None)
@given(plain, plain)
def test_plain_values_are_alike_when_they_print_alike(one, other):
    assert (paths(Holder(one), Holder(other)) == []) == (repr(one) == repr(other))


def test_the_place_is_named():
    first, second = (nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2, eps=eps)) for eps in (1e-5, 1e-6))
    assert list(differences(first, second)) == [("1.eps", 1e-5, 1e-6, False)]
    second[1].eps = 1e-5
    del second[0].out_features
    second.extra = 1
    assert list(differences(first, second)) == [("0.out_features", 2, NOTHING, False), ("extra", NOTHING, 1, False)]


def test_numbers_in_tensors_mode_and_gradients_do_not_count():
    first, second = (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)) for _ in range(2))
    second.eval()
    second(torch.randn(3, 2)).sum().backward()
    second[1].running_mean += 1
    assert paths(first, second) == []


def test_the_order_of_parts_and_their_presence_count():
    parts = [("a", nn.Tanh()), ("b", nn.ReLU())]
    assert paths(nn.Sequential(OrderedDict(parts)), nn.Sequential(OrderedDict(reversed(parts)))) == [""]
    assert paths(nn.Linear(2, 2), nn.Linear(2, 2, bias=False)) == ["bias"]
    assert paths(nn.Sequential(nn.Tanh()), nn.Sequential(nn.ReLU()))[0] == "0.__class__"


def test_references_to_own_parts_are_alike_when_they_name_the_same_part():
    def make(name):
        module = Holder()
        module.other = nn.Linear(2, 2)
        module.again = [getattr(module, name), module]
        module.inner.call = module.forward
        module.inner.parent = weakref.ref(module)
        module.kept = {0: getattr(module, name).weight}
        return module

    assert paths(make("inner"), make("inner")) == []
    assert paths(make("inner"), make("other")) == ["again[0]", "kept[0]"]


def test_modules_that_are_not_registered_are_compared_with_their_numbers():
    first, second = Holder([nn.Linear(2, 2)]), Holder([nn.Linear(2, 2)])
    assert paths(first, second) == ["value[0].weight", "value[0].bias"]
    second.value[0].load_state_dict(first.value[0].state_dict())
    assert paths(first, second) == []


def test_hooks_count_and_not_their_numbers():
    def hooked(*hooks):
        module = nn.Linear(2, 2)
        for hook in hooks:
            module.register_forward_hook(hook)
        return module

    assert paths(hooked(scaled(1)), hooked(scaled(1))) == []
    assert paths(hooked(scaled(1)), hooked(scaled(2))) == ["_forward_hooks[0].by"]
    assert paths(hooked(), hooked(scaled(2))) != []


def test_parametrised_modules_are_alike():
    first, second, other = (parametrizations.weight_norm(nn.Linear(2, 2), dim=dim) for dim in (0, 0, 1))
    assert paths(first, second) == []
    assert paths(first, other) != []


class Cached(nn.Module):
    @cached_property
    def table(self):
        return torch.arange(3)


def test_a_cached_property_is_told_apart():
    first, second = Cached(), Cached()
    assert torch.equal(second.table, torch.arange(3))
    assert [(path, cached) for path, _, _, cached in differences(first, second)] == [("table", True)]


def test_a_shared_module_has_one_place_and_a_shared_tensor_two():
    module = nn.Module()
    module.a = nn.Linear(2, 2)
    module.b = module.a
    module.c = nn.Linear(2, 2)
    module.c.weight = module.a.weight
    module.c.register_buffer("now", module.a.bias)
    module.c.register_buffer("later", torch.zeros(1), persistent=False)
    assert list(slots(module)) == ["a.weight", "a.bias", "c.weight", "c.bias", "c.now", "c.later"]
    assert tied(module) == {"c.weight": "a.weight", "c.now": "a.bias"}
