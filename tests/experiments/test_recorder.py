import json

import pytest

from manyheads.experiments import budgets, recorder
from manyheads.reporting import recordings

TINY = budgets.Config(n_tokens=(4, 5, 6), d_heads=(1, 2), spreads=(1.0,), n_seeds=2, n_steps=25)


@pytest.fixture
def room(tmp_path, monkeypatch):
    monkeypatch.setattr(recordings, "data_root", lambda: tmp_path)
    monkeypatch.setitem(budgets.RECORDINGS, "tiny", TINY)
    return tmp_path


def record(room):
    return recorder.record("tiny", shard_folder=room / "shards", n_jobs=1)


def test_a_recording_holds_the_result_of_a_plain_run_and_replays(room):
    record(room)
    recording = recordings.load("tiny")
    assert recording.result == recordings.plain(budgets.run(TINY))
    assert recording.experiment == "manyheads.experiments.budgets"
    assert recorder.replay("tiny") is None


def test_a_stopped_run_goes_on_with_the_missing_shards(room, monkeypatch):
    whole, calls = budgets.run_shard, []

    def stops(config, shard):
        calls.append(tuple(shard))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(config, shard)

    monkeypatch.setattr(budgets, "run_shard", stops)
    with pytest.raises(KeyboardInterrupt):
        record(room)
    assert not list((room / "recordings").glob("*")) if (room / "recordings").exists() else True
    record(room)
    assert calls == [(4, 1.0), (5, 1.0), (6, 1.0), (6, 1.0)]
    assert recordings.load("tiny").result == recordings.plain(budgets.run(TINY))


def test_two_processes_give_the_recording_of_one(room):
    record(room)
    alone = recordings.load("tiny")
    recorder.record("tiny", shard_folder=room / "others", n_jobs=2)
    together = recordings.load("tiny")
    assert together.result == alone.result
    assert together.provenance["processes"] == 2


def test_shards_of_other_code_are_not_reused(room, monkeypatch):
    record(room)
    monkeypatch.setattr(recordings, "code_digest", lambda _: "other")
    record(room)
    assert len(list((room / "shards" / "tiny").iterdir())) == 2


def test_a_recording_that_the_code_no_longer_makes_is_found(room):
    path = record(room)
    content = json.loads(path.read_text())
    content.pop("digest")
    content["config"]["learning_rate"] *= 1.01  # as if the code had changed
    content["digest"] = recordings.digest(content)
    path.write_text(json.dumps(content))
    assert "step 1" in recorder.replay("tiny")


def test_an_unknown_name_lists_the_known_ones_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="unknown recording 'budget'; did you mean 'budgets'"):
        recorder.record("budget", shard_folder=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", recordings.names())
def test_every_recording_replays(name):
    """The replay test: the code in this checkout still makes the first steps of every recording."""
    assert recorder.replay(name) is None


def test_every_recording_that_an_experiment_offers_is_there():
    assert sorted(recorder.registry()) == recordings.names()
