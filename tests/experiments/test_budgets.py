import numpy as np
import pytest
import torch

from manyheads.experiments import budgets
from manyheads.reporting import recordings

SMALL = budgets.Config(n_tokens=(6, 8), d_heads=(1, 3, 7), spreads=(2.0,), n_seeds=3, n_steps=250)


@pytest.fixture(scope="module")
def result():
    return budgets.run(SMALL)


def test_the_shapes_are_as_documented(result):
    assert result.trained.shape == result.truncated.shape == (2, 1, 3, 3)


def test_training_beats_truncation_where_the_head_is_small_and_more_dimensions_help(result):
    assert (result.trained[:, :, 0] < result.truncated[:, :, 0]).all()
    assert (np.diff(result.trained.mean(-1), axis=-1) < 0).all()


def test_the_largest_head_is_exact(result):
    assert (result.truncated[:, :, -1] < 1e-9).all()
    assert (result.trained[:, :, -1] < 0.02 * result.trained[:, :, 0]).all()


def test_the_same_seed_gives_the_same_bits(result):
    assert np.array_equal(budgets.run(SMALL).trained, result.trained)


def test_a_pattern_does_not_depend_on_how_many_others_there_are(result):
    fewer = budgets.targets(budgets.Config(n_seeds=2), 6, 2.0)
    more = budgets.targets(budgets.Config(n_seeds=5), 6, 2.0)
    assert torch.equal(fewer, more[:2])


def test_first_losses_are_those_of_the_run():
    losses = budgets.first_losses(SMALL, 5)
    assert len(losses) == 5
    assert losses == budgets.first_losses(SMALL, 5)
    assert losses != budgets.first_losses(budgets.Config(**{**recordings.plain(SMALL), "seed": 1}), 5)
    assert losses[-1] < losses[0]


def test_a_config_survives_json():
    assert budgets.Config(**recordings.plain(SMALL)) == SMALL


def test_an_unknown_profile_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown profile 'quik'; did you mean 'quick'"):
        budgets.Config(profile="quik")
