import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

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
        first_losses=[1.0 / (i + 1) for i in range(30)],
        wall_seconds=90.0,
        device="cpu",
    )


@pytest.mark.usefixtures("saved")
def test_what_is_loaded_is_what_was_saved_to_the_last_bit():
    recording = recordings.load("toy")
    assert recording.result == {"values": [[0.1, 1 / 3], [1e-300, -2.5]], "names": ["a", "b"]}
    assert recording.config["values"] == [0, 1, 2]
    assert len(recording.first_losses) == recordings.REPLAYED_STEPS
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


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), object(), {1, 2}])
def test_what_json_cannot_hold_is_refused_and_nothing_is_written(saved, bad):
    before = saved.read_bytes()
    with pytest.raises(ValueError, match="recording"):
        recordings.save(
            "toy", experiment="manyheads", config={}, result={"x": bad}, first_losses=[], wall_seconds=0, device="cpu"
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


def test_losses_are_compared_relatively_and_step_by_step():
    old = [1.0, 1e-6]
    assert recordings.compare_losses(old, [1.0 + 0.9e-4, 1e-6]) is None
    assert "step 1" in recordings.compare_losses(old, [1.0, 1.1e-6])
    assert "step 0" in recordings.compare_losses(old, [float("nan"), 1e-6])
    assert "2 losses recorded, 1 replayed" in recordings.compare_losses(old, [1.0])
