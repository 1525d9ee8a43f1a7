import numpy as np
import pytest

from manyheads.experiments import collisions
from manyheads.reporting import recordings

SMALL = collisions.Config(n_tokens=(3,), widths=(4, 8), n_seeds=2, n_trained=2, n_steps=30, n_starts=3, walk=25)


@pytest.fixture(scope="module")
def result():
    return collisions.run(SMALL)


def test_the_shapes_are_as_documented(result):
    assert result.half_gap.shape == result.distance.shape == (2, 1, 2, 2)
    assert result.trained_bound.shape == result.trained_error.shape == (2,)


def test_pairs_collide_and_a_small_state_leaves_a_gap(result):
    assert (result.distance < 1e-9).all()
    assert (result.half_gap[:, :, 0] > 0.01).all()


def test_the_gap_closes_once_a_nonlinear_state_holds_all_tokens(result):
    assert (result.half_gap[0, 0, 1] < 1e-6).all()  # E = 8 is more than T d = 6


def test_no_trained_network_beats_the_certificate_of_its_own_map(result):
    assert (result.trained_error >= result.trained_bound - 1e-6).all()


def test_the_same_seed_gives_the_same_numbers(result):
    assert np.allclose(collisions.run(SMALL).half_gap, result.half_gap, rtol=1e-9)


def test_a_config_survives_json():
    assert collisions.Config(**recordings.plain(SMALL)) == SMALL


def test_an_unknown_profile_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown profile 'ful'; did you mean 'full'"):
        collisions.Config(profile="ful")
