import json
import os
import subprocess
import sys

import pytest

from manyheads.experiments import budgets, recorder, sweep
from manyheads.reporting import recordings

TINY = {"n_tokens": (4, 5, 6), "d_heads": (2,), "spreads": (1.0,), "n_seeds": 2, "n_steps": 25}


@pytest.fixture
def room(tmp_path, monkeypatch):
    monkeypatch.setattr(recordings, "data_root", lambda: tmp_path)
    monkeypatch.setattr(budgets.Config, "PROFILES", {"full": TINY})
    return tmp_path


def record(room):
    return recorder.record("budgets", folder=room / "points", n_jobs=1)


def plain_run():
    return sweep.run(budgets, budgets.Config(**TINY)).to_json()


def test_a_recording_holds_the_result_of_a_plain_run_and_replays(room):
    record(room)
    recording = recordings.load("budgets")
    assert recording.result == recordings.plain(plain_run())
    assert recording.experiment == "manyheads.experiments.budgets"
    assert recorder.replay("budgets") is None


def test_a_stopped_run_goes_on_with_the_missing_points(room, monkeypatch):
    whole, calls = budgets.measure, []

    def stops(config, **point):
        calls.append(point["n_tokens"])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(config, **point)

    monkeypatch.setattr(budgets, "measure", stops)
    with pytest.raises(KeyboardInterrupt):
        record(room)
    assert recordings.names() == []
    record(room)
    assert calls == [4, 5, 6, 6]
    assert recordings.load("budgets").result == recordings.plain(plain_run())


def test_two_processes_give_the_recording_of_one():
    """In a process of its own, so that the workers see the tiny profile too."""
    code = f"""
import json, pathlib, tempfile
from manyheads.experiments import budgets, recorder
config = budgets.Config(**{TINY!r})
folder = pathlib.Path(tempfile.mkdtemp())
for n_jobs in (1, 2):
    paths = [folder / f"{{n_jobs}}-{{i}}.json" for i in range({3})]
    recorder.measure_all(budgets, config, paths, n_jobs)
    print([json.loads(path.read_text())["measured"] for path in paths])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    one, two = done.stdout.splitlines()
    assert one == two


def test_points_of_other_code_are_not_reused(room, monkeypatch):
    record(room)
    monkeypatch.setattr(recordings, "code_digest", lambda _: "other")
    record(room)
    assert len(list((room / "points" / "budgets").iterdir())) == 2


def test_a_recording_that_the_code_no_longer_makes_is_found(room):
    path = record(room)
    content = json.loads(path.read_text())
    content.pop("digest")
    content["config"]["learning_rate"] *= 1.01  # as if the code had changed
    content["digest"] = recordings.digest(content)
    path.write_text(json.dumps(content))
    assert "loss[1]: recorded" in recorder.replay("budgets")


def test_an_unknown_name_lists_the_known_ones_and_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="unknown recording 'budget'; did you mean 'budgets'"):
        recorder.record("budget", folder=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("capability", [None, "default", "avx2"], ids=str)
def test_every_recording_replays_on_every_instruction_set(capability):
    """The replay test: the code in this checkout still makes every recording, and so do other processors."""
    code = """
from manyheads.experiments import recorder
from manyheads.reporting import recordings
for name in recordings.names():
    print(name, recorder.replay(name))
"""
    environment = {k: v for k, v in os.environ.items() if k != "ATEN_CPU_CAPABILITY"}
    environment |= {} if capability is None else {"ATEN_CPU_CAPABILITY": capability}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{name} None" for name in recordings.names()]


def test_every_experiment_is_recorded():
    assert sorted(recorder.registry()) == recordings.names()
