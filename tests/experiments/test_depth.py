import numpy as np
import pytest

from manyheads.experiments import depth
from manyheads.reporting import recordings

SMALL = depth.Config(n_tokens=(3,), n_seeds=2, n_steps=60, eval_size=512)


@pytest.fixture(scope="module")
def result():
    return depth.run(SMALL)


def test_the_shapes_are_as_documented_and_training_helps(result):
    assert result.nmse.shape == (1, 2, 2)
    assert (result.nmse < 1).all()


def test_the_same_seed_gives_the_same_bits(result):
    assert np.array_equal(depth.run(SMALL).nmse, result.nmse)


def test_the_wide_networks_have_several_times_the_parameters_of_the_deep_one():
    counts = depth.combine(depth.Config(profile="full"), [[0.0] * 6] * 12).parameters
    deep, *wide = counts
    assert max(wide) > 5 * deep
    assert len(depth.NETWORKS[depth.Config(profile="full").networks[0]]["heads"]) == 2


def test_first_losses_are_those_of_the_whole_run():
    first = depth.first_losses(SMALL, 5)
    whole = depth.train(SMALL, 3, SMALL.networks[0])
    assert first == np.mean([member.losses[:5] for member in whole], axis=0).tolist()


def test_a_config_survives_json():
    assert depth.Config(**recordings.plain(SMALL)) == SMALL


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"profile": "ful"}, "unknown profile 'ful'; did you mean 'full'"),
        ({"networks": ("two layers",)}, "unknown network 'two layers'; did you mean 'two layers, E = 16'"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        depth.Config(**arguments)
