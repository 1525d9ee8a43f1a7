import pytest

from manyheads.experiments import depth
from manyheads.models import Encoder


def test_training_beats_a_constant(measured):
    assert (measured(depth)["nmse"] < 1).all()


def test_the_wide_networks_have_several_times_the_parameters_of_the_deep_one():
    config = depth.Config.profile("full")
    deep, *wide = (depth.parameters(config, network) for network in config.networks)
    assert max(wide) > 2 * deep
    assert deep == sum(p.numel() for p in Encoder(depth.spec(config, config.networks[0]), device="meta").parameters())
    assert config.networks[0] == depth.DEEP
    assert len(depth.spec(config, depth.DEEP).heads) == 2


def test_an_unknown_network_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown network 'two layers'; did you mean 'two layers, E = 16, H = 1'"):
        depth.Config(networks=("two layers",))
