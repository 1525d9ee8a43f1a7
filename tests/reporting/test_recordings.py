import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyheads.reporting import recordings


@dataclass(frozen=True)
class Toy:
    values: np.ndarray
    names: tuple[str, ...] = ("a", "b")


@pytest.fixture
def saved(tmp_path, monkeypatch):
    (tmp_path / "recordings").mkdir()
    monkeypatch.setattr(recordings, "data_root", lambda: tmp_path)
    return recordings.save(
        "toy",
        experiment="manyheads.reporting.statistics",
        config=Toy(np.arange(3)),
        result=Toy(np.array([[0.1, 1 / 3], [1e-300, -2.5]])),
        replay={"loss": [1.0 / (i + 1) for i in range(3)]},
        wall_seconds=90.0,
        device="cpu",
    )


@pytest.mark.usefixtures("saved")
def test_what_is_loaded_is_what_was_saved_to_the_last_bit():
    recording = recordings.load("toy")
    assert recording.result == {"values": [[0.1, 1 / 3], [1e-300, -2.5]], "names": ["a", "b"]}
    assert recording.config["values"] == [0, 1, 2]
    assert recording.replay == {"loss": [1.0, 1 / 2, 1 / 3]}
    assert "cpu (1 x 1 threads) in 1.5 min" in recording.credit()
    assert recordings.names() == ["toy"]


def test_an_edited_number_is_found(saved):
    saved.write_text(saved.read_text().replace("-2.5", "-2.4"))
    with pytest.raises(recordings.DamagedRecording, match=r"toy\.json.*changed by hand.*make record NAME=toy"):
        recordings.load("toy")


def test_a_truncated_file_is_found(saved):
    saved.write_text(saved.read_text()[:200])
    with pytest.raises(recordings.DamagedRecording, match=r"toy\.json: not readable as JSON"):
        recordings.load("toy")


@pytest.mark.parametrize("field", ["result", "digest", "provenance", "schema"])
def test_a_missing_field_is_found(saved, field):
    content = json.loads(saved.read_text())
    del content[field]
    saved.write_text(json.dumps(content))
    with pytest.raises(recordings.DamagedRecording, match=field):
        recordings.load("toy")


def test_a_file_of_another_schema_is_refused(saved):
    content = json.loads(saved.read_text())
    saved.write_text(json.dumps({**content, "schema": 99}))
    with pytest.raises(recordings.DamagedRecording, match="schema 99"):
        recordings.load("toy")


@pytest.mark.usefixtures("saved")
def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(ValueError, match="unknown recording 'tpy'; did you mean 'toy'"):
        recordings.load("tpy")


FINE = {"result": {"x": 1.0}, "replay": {"loss": [1.0]}}


@pytest.mark.parametrize("where", FINE)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), object(), {1, 2}])
def test_what_json_cannot_hold_is_refused_and_nothing_is_written(saved, bad, where):
    before = saved.read_bytes()
    with pytest.raises(ValueError, match="recording"):
        recordings.save(
            "toy", experiment="manyheads", config={}, **{**FINE, where: {"x": bad}}, wall_seconds=0, device="cpu"
        )
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_the_code_digest_follows_imports():
    before = recordings.code_digest("manyheads.reporting.explore")
    assert before == recordings.code_digest("manyheads.reporting.explore")
    assert before != recordings.code_digest("manyheads.reporting.figures")


def test_a_change_in_an_imported_module_changes_the_code_digest(tmp_path, monkeypatch):
    before = recordings.code_digest("manyheads.reporting.explore")
    from manyheads.reporting import figures

    changed = tmp_path / "figures.py"
    changed.write_text(Path(figures.__file__).read_text() + "\n# changed\n")
    monkeypatch.setattr(figures.__spec__, "origin", str(changed))
    assert recordings.code_digest("manyheads.reporting.explore") != before


@pytest.mark.parametrize("name", ["../esc", "", "a/b", "a b", ".hidden", "nul\0"])
def test_a_name_that_is_no_file_stem_is_refused_and_nothing_is_written(saved, name):
    with pytest.raises(ValueError, match="must be letters, digits"):
        recordings.save(name, experiment="manyheads", config={}, **FINE, wall_seconds=0, device="cpu")
    assert list(saved.parent.iterdir()) == [saved]
    assert [path.name for path in saved.parents[1].iterdir()] == ["recordings"]


@pytest.mark.usefixtures("saved")
@pytest.mark.parametrize("name", ["../toy", "", "recordings/../toy", "toy.json"])
def test_only_names_in_the_list_are_loaded(name):
    with pytest.raises(ValueError, match="unknown recording"):
        recordings.load(name)


def test_a_recording_without_anything_to_replay_is_refused(saved):
    with pytest.raises(ValueError, match="replay is empty"):
        recordings.save("toy", experiment="manyheads", config={}, result={}, replay={}, wall_seconds=0, device="cpu")


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"a": ' * 50_000, "1" * 5000, '{"schema": ' + "1" * 5000 + "}", "[]", "null", '"x"', ""]
)
def test_whatever_is_in_the_file_the_error_names_it(saved, content):
    saved.write_text(content)
    with pytest.raises(recordings.DamagedRecording, match=r"toy\.json: .*make record NAME=toy"):
        recordings.load("toy")


@given(st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_mutated_file_is_damaged_or_whole(saved, data):
    """Whatever bytes change, a recording is either the one that was written or refused with its name."""
    original = saved.read_bytes()
    start = data.draw(st.integers(0, len(original)))
    end = data.draw(st.integers(start, len(original)))
    saved.write_bytes(original[:start] + data.draw(st.binary(max_size=20)) + original[end:])
    with contextlib.suppress(recordings.DamagedRecording):
        assert recordings.load("toy").result["names"] == ["a", "b"]
    saved.write_bytes(original)


def test_numbers_are_compared_relatively_and_one_by_one():
    old = {"loss": [1.0, 1e-3]}
    assert recordings.compare(old, {"loss": [1.0 + 0.9e-4, 1e-3]}) is None
    assert "loss[1]: recorded 0.001, replayed 0.0011" in recordings.compare(old, {"loss": [1.0, 1.1e-3]})
    assert "loss[0]" in recordings.compare(old, {"loss": [float("nan"), 1e-3]})
    assert "loss: [2] numbers recorded, [1] replayed" in recordings.compare(old, {"loss": [1.0]})
    assert recordings.compare(old, {"error": [1.0]}) == "recorded loss; replayed error"


def test_what_is_rounding_of_zero_agrees_and_what_is_not_does_not():
    assert recordings.compare({"distance": [1e-15, 0.0]}, {"distance": [3e-12, 0.0]}) is None
    assert recordings.compare({"distance": [1e-15, 0.0]}, {"distance": [3e-7, 0.0]})
