import numpy as np
import pytest
import torch

from manyheads.experiments import depth, forced_errors, kth_largest, recipe
from tests.experiments.small import SMALL


@pytest.mark.parametrize(
    ("experiment", "point"),
    [(depth, (3, "one layer, E = 16, H = 2")), (kth_largest, (4, 1, 2)), (forced_errors, (10,))],
)
def test_the_first_losses_are_those_of_the_whole_run(experiment, point):
    config = SMALL[experiment]
    first = recipe.first_losses(experiment.train(config, *point, stop_after=7))
    whole = experiment.train(config, *point)
    assert first == np.mean([member.losses[:7] for member in whole], axis=0).tolist()


def test_the_normalised_error_of_a_constant_is_one():
    samples = torch.zeros(50, 1), torch.arange(50.0)[:, None]
    assert float(recipe.nmse(lambda x: x + 24.5, samples)) == pytest.approx(1)
    assert float(recipe.nmse(lambda x: samples[1], samples)) == 0
