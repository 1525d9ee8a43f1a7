import re

import pytest
import torch
from torch import nn

from manyheads.models.feedforward import KINDS, FeedForward
from manyheads.models.seeds import generator, initialise

DEFINITIONS = {
    "gelu": lambda u, _: u * (1 + torch.erf(u / 2**0.5)) / 2,
    "relu": lambda u, _: torch.where(u > 0, u, 0 * u),
    "bilinear": lambda u, g: u * g,
    "swiglu": lambda u, g: u * g / (1 + torch.exp(-g)),
}


def network(kind, **options):
    module = initialise(FeedForward(3, 7, 2, kind, dtype=torch.float64, **options), 0)
    for name, parameter in module.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter, generator=generator(0, name))
    return module


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_is_its_definition(kind):
    module, x = network(kind), torch.randn(4, 5, 3, dtype=torch.float64, generator=generator(0, "x"))
    p = dict(module.named_parameters())
    up = x @ p["up_proj.weight"].T + p["up_proj.bias"]
    gate = x @ p["gate_proj.weight"].T + p["gate_proj.bias"] if "gate_proj.weight" in p else None
    hidden = DEFINITIONS[kind](up, gate)
    torch.testing.assert_close(module(x), hidden @ p["down_proj.weight"].T + p["down_proj.bias"])


def test_a_bilinear_network_multiplies_exactly():
    module = FeedForward(2, 1, 1, "bilinear", dtype=torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        module.up_proj.weight[0, 0] = module.gate_proj.weight[0, 1] = module.down_proj.weight[0, 0] = 1
    assert module(torch.tensor([3.0, -7.0], dtype=torch.float64)).item() == -21


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 7, 2, "gleu"), "unknown kind 'gleu'; did you mean 'gelu'? known: gelu, relu, bilinear, swiglu"),
        ((0, 7, 2), "d_in=0 must be a positive integer; nearest: 1"),
        ((3, 7.5, 2), "d_hidden=7.5 must be a positive integer; nearest: 8"),
        ((3, 7, None), "d_out=None must be a positive integer"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        FeedForward(*arguments)


def test_the_kind_is_shown():
    assert "kind='swiglu'" in repr(FeedForward(1, 1, 1, "swiglu"))
