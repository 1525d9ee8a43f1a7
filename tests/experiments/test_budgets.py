import numpy as np
import torch

from manyheads.experiments import budgets


def test_training_beats_truncation_where_the_head_is_small_and_more_dimensions_help(measured):
    grid = measured(budgets)
    assert (grid.at(d_head=1)["trained"] < grid.at(d_head=1)["truncated"]).all()
    assert (np.diff(grid["trained"].mean(-1), axis=-1) < 0).all()


def test_the_largest_head_is_exact(measured):
    grid = measured(budgets)
    assert (grid.at(d_head=7)["truncated"] < 1e-9).all()
    assert (grid.at(d_head=7)["trained"] < 0.02 * grid.at(d_head=1)["trained"]).all()


def test_a_pattern_does_not_depend_on_how_many_others_there_are():
    fewer = budgets.targets(budgets.Config(n_seeds=2), 6, 2.0)
    more = budgets.targets(budgets.Config(n_seeds=5), 6, 2.0)
    assert torch.equal(fewer, more[:2])
