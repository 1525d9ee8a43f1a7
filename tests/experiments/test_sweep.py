import json

import pytest

from manyheads.experiments import budgets, sweep
from manyheads.reporting import recordings


def test_the_last_axis_runs_fastest():
    config = budgets.Config(n_tokens=(6, 8), spreads=(1.0,), d_heads=(1, 2))
    assert sweep.points(config)[:3] == [
        {"n_tokens": 6, "spread": 1.0, "d_head": 1},
        {"n_tokens": 6, "spread": 1.0, "d_head": 2},
        {"n_tokens": 8, "spread": 1.0, "d_head": 1},
    ]


@pytest.mark.parametrize("experiment", [pytest.param(budgets, id="budgets")])
def test_a_recording_is_a_grid_like_a_live_one(experiment):
    recorded = sweep.recorded(experiment)
    assert recorded.config == experiment.Config.profile("full")
    assert dict(recorded.axes) == recorded.config.axes | {"seed": tuple(range(recorded.config.n_seeds))}
    assert recorded.origin.startswith("Recorded 20")
    assert recorded.at(n_tokens=64, spread=2.0, d_head=8).student("trained").n_seeds == recorded.config.n_seeds


def test_a_recording_that_does_not_fit_its_experiment_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(recordings, "data_root", lambda: tmp_path)
    path = recordings.save(
        "budgets",
        experiment=budgets.__name__,
        config={"n_heads": 3},
        result={"axes": {}, "values": {}},
        replay={"loss": [1.0]},
        wall_seconds=0,
        device="cpu",
    )
    with pytest.raises(recordings.DamagedRecording, match=r"budgets\.json: its result does not fit.*n_heads"):
        sweep.recorded(budgets)
    assert json.loads(path.read_text())["schema"] == recordings.SCHEMA
