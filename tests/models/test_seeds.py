import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from manyheads.models import Attention, AttentionSpec
from manyheads.models.seeds import generator, initialise

names = st.lists(st.text(max_size=5), max_size=3)


def draw(*key) -> list[float]:
    return torch.rand(4, generator=generator(*key)).tolist()


def test_keys_are_those_of_every_machine_and_version():
    # The first bytes of sha256(b'[0, "initialise", "q_proj.weight"]'): another key would change every result.
    assert generator(0, "initialise", "q_proj.weight").initial_seed() == 0xE30B8601
    assert generator(0).device.type == "cpu"


@given(st.integers(), names, st.integers(), names)
def test_equal_keys_and_only_those_give_equal_draws(seed, key, other_seed, other_key):
    assert draw(seed, *key) == draw(seed, *key)
    if (seed, key) != (other_seed, other_key):
        assert draw(seed, *key) != draw(other_seed, *other_key)


def test_names_do_not_run_together():
    assert draw(0, "ab", "c") != draw(0, "a", "bc") != draw(0, "abc")


@pytest.mark.parametrize("seed", [True, 1.0, "0", None])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(ValueError, match=r"seed=.* must be an integer"):
        generator(seed)


def test_a_name_is_a_string():
    with pytest.raises(ValueError, match=r"names=\('layer', 3\) must be strings, for instance \('layer', '3'\)"):
        generator(0, "layer", 3)


def module() -> nn.Module:
    attention = Attention(AttentionSpec(8, 2, qk_norm=True, qk_gain=True, bias=True))
    return nn.ModuleDict({"attention": attention, "norm": nn.LayerNorm(8), "embedding": nn.Embedding(400, 300)})


def test_each_parameter_becomes_what_its_name_says():
    parameters = dict(initialise(module(), 0).named_parameters())
    for name, parameter in parameters.items():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "gain" in name or name == "norm.weight":
            assert (parameter == 1).all(), name
        else:
            assert parameter.unique().numel() > 0.9 * parameter.numel(), name
    assert {"attention.gain_q", "attention.gain_k", "attention.q_proj.bias", "norm.weight"} <= set(parameters)


def test_matrices_have_variance_one_over_fan_in():
    weight = initialise(nn.Linear(300, 400), 0).weight
    standard_error = 1 / math.sqrt(2 * weight.numel())
    assert weight.std().item() * math.sqrt(300) == pytest.approx(1, abs=4 * standard_error)
    assert weight.mean().item() * math.sqrt(300) == pytest.approx(0, abs=4 / math.sqrt(weight.numel()))
    assert initialise(nn.Conv1d(100, 200, 3), 0).weight.std().item() * math.sqrt(300) == pytest.approx(1, abs=0.02)


def test_a_free_vector_is_drawn_too():
    module = nn.Module()
    module.class_token = nn.Parameter(torch.zeros(10_000))
    assert initialise(module, 0).class_token.std().item() * 100 == pytest.approx(1, abs=0.03)


def test_a_draw_depends_on_its_own_name_alone():
    alone, among = nn.Sequential(nn.Linear(4, 3)), nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    torch.manual_seed(1)  # the global generator has no say
    initialise(alone, 5)
    torch.rand(3)
    initialise(among, 5)
    assert torch.equal(alone[0].weight, among[0].weight)
    assert not torch.equal(alone[0].weight, initialise(copy.deepcopy(alone), 6)[0].weight)


def test_types_round_one_and_the_same_draw():
    double, single, half = (
        initialise(nn.Linear(40, 30, dtype=t), 0).weight for t in (torch.float64, torch.float32, torch.bfloat16)
    )
    assert torch.equal(double.float(), single)
    assert torch.equal(double.bfloat16(), half)


def test_shared_parameters_are_drawn_once():
    tied = nn.ModuleDict({"embedding": nn.Embedding(6, 4), "head": nn.Linear(4, 6, bias=False)})
    tied["head"].weight = tied["embedding"].weight
    initialise(tied, 0)
    assert torch.equal(
        tied["head"].weight, initialise(nn.ModuleDict({"embedding": nn.Embedding(6, 4)}), 0)["embedding"].weight
    )


def test_gradients_stay_switched_on_and_the_module_comes_back():
    linear = nn.Linear(4, 3)
    assert initialise(linear, 0) is linear
    assert linear.weight.requires_grad
    assert linear.weight.is_leaf


def test_meta_parameters_are_refused_and_nothing_is_changed():
    half_meta = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2, device="meta"))
    before = half_meta[0].weight.clone()
    with pytest.raises(ValueError, match=r"parameter '1.weight' is on the meta device .*to_empty"):
        initialise(half_meta, 0)
    assert torch.equal(half_meta[0].weight, before)
    initialise(half_meta[1].to_empty(device="cpu"), 0)
