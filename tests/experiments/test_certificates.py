import copy

import numpy as np
import pytest

from manyheads.experiments import certificates
from manyheads.reporting import recordings
from tests.experiments.small import SMALL


def test_pairs_collide_and_a_small_state_leaves_a_gap(measured):
    grid = measured(certificates)
    assert (grid["distance"] < 1e-9).all()
    assert (grid.at(width=4)["half_gap"] > 0.01).all()


def test_the_gap_closes_once_a_nonlinear_state_holds_all_tokens(measured):
    grid = measured(certificates)
    assert (grid.at(embedding="mlp", width=8)["half_gap"] < 1e-6).all()  # E = 8 is more than T d = 6


def test_replayed_pairs_are_those_of_the_sweep(measured):
    config = SMALL[certificates]
    gaps = certificates.replay(config)["gap"]
    assert np.allclose(np.array(gaps) / 2, measured(certificates).at(embedding="mlp", n_tokens=3, width=4)["half_gap"])


@pytest.mark.parametrize("seed", [0, 1])
def test_a_replay_refuses_a_pair_that_does_not_collide(seed):
    config = SMALL[certificates]
    honest = certificates.replay(config)
    moved = copy.deepcopy(honest)
    moved["pairs"][seed][0][0][0] += 1e-3
    assert "distance" in recordings.compare(moved, certificates.replay(config, moved))
