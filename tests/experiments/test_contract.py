"""What every experiment keeps, whatever it measures."""

import json
from dataclasses import replace

import numpy as np
import pytest

from manyheads.experiments import recorder, sweep
from manyheads.reporting import recordings
from tests.experiments.small import SMALL

EXPERIMENTS = pytest.mark.parametrize("experiment", recorder.registry().values(), ids=recorder.registry())


def test_every_experiment_is_tested_here():
    assert set(SMALL) == set(recorder.registry().values())


@EXPERIMENTS
def test_a_grid_has_the_axes_of_its_config_and_then_the_seeds(experiment, measured):
    config, grid = SMALL[experiment], measured(experiment)
    assert dict(grid.axes) == config.axes | {"seed": tuple(range(config.n_seeds))}
    assert grid.config == config
    assert all(np.isfinite(array).all() for array in grid.values.values())


@EXPERIMENTS
def test_the_last_point_alone_gives_its_bits_of_the_whole_run(experiment, measured):
    config, grid = SMALL[experiment], measured(experiment)
    point = sweep.points(config)[-1]
    alone = sweep.plain(experiment.measure(config, **point))
    assert alone == sweep.plain(grid.at(**point).values)


@EXPERIMENTS
def test_a_replay_finds_its_own_numbers_again_and_another_seed_does_not(experiment):
    config = SMALL[experiment]
    once = experiment.replay(config)
    assert recordings.compare(once, experiment.replay(config, once)) is None
    assert recordings.compare(once, experiment.replay(replace(config, seed=7), once))
    assert recordings.plain(once)  # it fits into a recording


@EXPERIMENTS
def test_a_config_survives_json(experiment):
    config = SMALL[experiment]
    assert experiment.Config(**json.loads(json.dumps(recordings.plain(config)))) == config


@EXPERIMENTS
def test_profiles_change_what_they_name_and_nothing_else(experiment):
    assert experiment.Config.profile("quick") == experiment.Config()
    assert set(experiment.Config.PROFILES) == {"gpu", "full"}
    full = experiment.Config.profile("full", seed=3)
    assert full.seed == 3
    assert len(sweep.points(full)) >= len(sweep.points(experiment.Config.profile("gpu")))


@EXPERIMENTS
def test_unknown_names_list_the_known_ones(experiment):
    with pytest.raises(ValueError, match="unknown profile 'ful'; did you mean 'full'"):
        experiment.Config.profile("ful")
    with pytest.raises(ValueError, match="unknown setting 'n_seed'; did you mean 'n_seeds'"):
        experiment.Config.profile("quick", n_seed=3)
