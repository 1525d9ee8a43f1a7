import copy
import errno
import json
import os
import pickle
import re
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from manyheads.files import write_whole
from manyheads.training import DamagedCheckpoint, UnsavedCheckpoint, checkpoint, engine, ensemble, loop, train
from manyheads.training.checkpoint import load, rehearse, save
from tests.training import small

TENSORS = {
    "a": torch.arange(6, dtype=torch.float64).reshape(2, 3).T,  # not contiguous
    "b": torch.tensor(3),
    "none": torch.zeros(0, 4),
    "flags": torch.tensor([True, False]),
    "half": torch.ones(3, dtype=torch.bfloat16),
}


def test_what_was_saved_is_loaded(tmp_path):
    path = save(tmp_path / "new" / "c.safetensors", TENSORS, {"steps": [1, 2.5], "nan": float("nan")})
    tensors, values = load(path)
    assert values["steps"] == [1, 2.5]
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(tensors[name], tensor)
        assert tensors[name].dtype == tensor.dtype
    assert [p.name for p in path.parent.iterdir()] == ["c.safetensors"]


def cut(path):
    path.write_bytes(path.read_bytes()[:-5])


def empty(path):
    path.write_bytes(b"")


def flip(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))


def edit(path):
    path.write_bytes(path.read_bytes().replace(b"seconds", b"secunds"))


def foreign(path):
    save_file({"weight": torch.ones(2)}, path)


def text(path):
    path.write_text(json.dumps({"not": "a checkpoint"}))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (cut, "no readable safetensors file"),
        (empty, "no readable safetensors file"),
        (text, "no readable safetensors file"),
        (flip, "the digest differs"),
        (edit, "the digest differs"),
        (foreign, "its format is None, not 'manyheads-checkpoint-1'"),
    ],
)
def test_a_damaged_checkpoint_says_which_what_and_how_to_go_on(damage, what, tmp_path):
    path = tmp_path / "c.safetensors"
    config = small.config(n_steps=3, checkpoint=str(path))
    train(small.model(), small.batch, small.loss, config)
    damage(path)
    with pytest.raises(DamagedCheckpoint, match=re.escape(repr(str(path)))) as error:
        train(small.model(), small.batch, small.loss, config)
    assert what in str(error.value)
    assert "Delete it to start from the beginning" in str(error.value)
    path.unlink()
    assert train(small.model(), small.batch, small.loss, config).n_steps == 3


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"learning_rate": 0.5}, "it was trained with learning_rate=0.01, now 0.5"),
        ({"seed": 1}, "it was trained with seed=0, now 1"),
        ({"n_steps": 4}, "it was trained with n_steps=3, now 4"),
    ],
)
def test_a_checkpoint_of_another_config_is_refused(change, what, tmp_path):
    where = {"checkpoint": str(tmp_path / "c")}
    train(small.model(), small.batch, small.loss, small.config(n_steps=3, **where))
    with pytest.raises(DamagedCheckpoint, match=re.escape(what)):
        train(small.model(), small.batch, small.loss, small.config(**{"n_steps": 3} | change | where))


def test_a_checkpoint_of_another_model_is_refused_before_it_changes_anything(tmp_path):
    config = small.config(n_steps=3, checkpoint=str(tmp_path / "c"))
    train(small.model(), small.batch, small.loss, config)
    other = small.model(spec=small.EncoderSpec(1, 1, 6, (1, 1), d_ff=8, norm=True, bias=True))
    before = small.parameters(other)
    with pytest.raises(DamagedCheckpoint, match=r"its layers\.1\..* has shape None, the model's \["):
        train(other, small.batch, small.loss, config)
    assert torch.equal(small.parameters(other), before)


# --- where nothing can be written -----------------------------------------------------------------------------------


def in_a_file(folder):
    (folder / "file").write_text("not a folder")
    return folder / "file" / "c"


def a_folder(folder):
    (folder / "c").mkdir()
    return folder / "c"


def a_long_name(folder):
    return folder / ("c" * 250)  # no room for the ending of the file that is written beside it


def a_long_folder(folder):
    return folder / ("c" * 300) / "c"


def a_pipe(folder):
    os.mkfifo(folder / "c")
    return folder / "c"


def a_null(folder):
    return f"{folder}/c\0"


def locked(folder):
    (folder / "closed").mkdir()
    (folder / "closed").chmod(0o500)
    return folder / "closed" / "c"


no_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def in_the_loop(loss, config, model=None):
    return train(model or small.model(), small.batch, loss, config, evaluate=small.loss)


def in_an_ensemble(loss, config, model=None):
    return ensemble.train([model or small.model()], small.batch, loss, [config], evaluate=small.loss)[0]


BOTH = {"loop": in_the_loop, "ensemble": in_an_ensemble}
both = pytest.mark.parametrize("run", BOTH.values(), ids=BOTH.keys())


@both
@pytest.mark.parametrize(
    "place", [in_a_file, a_folder, a_long_name, a_long_folder, a_pipe, a_null, pytest.param(locked, marks=no_root)]
)
def test_a_place_that_cannot_be_written_is_found_before_the_first_step(place, run, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_steps", None)  # not even one
    path = place(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=r"cannot be written: .*; name a file in a folder that can be") as error:
        run(small.loss, small.config(checkpoint=path))
    assert str(error.value).startswith(f"checkpoint={str(path)!r}")
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_trying_leaves_nothing_and_harms_nothing(tmp_path):
    path = tmp_path / "new" / "deep" / "c"
    rehearse(path, TENSORS, {})
    assert not list(tmp_path.iterdir())
    save(path, TENSORS, {"step": 1})
    before = path.read_bytes()
    rehearse(path, {}, {"step": 2})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


class Remembering(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.read = torch.nn.Linear(4, 1)
        self.register_buffer("seen", torch.zeros(()), persistent=False)

    def forward(self, x):
        if self.training:
            self.seen += 1
        return self.read(x.flatten(1)) * self.seen


def test_a_state_that_no_checkpoint_holds_is_found_before_the_first_step(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_steps", None)
    monkeypatch.setattr(Remembering, "get_extra_state", lambda self: {"seen": 3}, raising=False)
    with pytest.raises(ValueError, match=r"a checkpoint holds tensors alone, .*: 'model\._extra_state' is of type"):
        train(Remembering(), small.batch, small.loss, small.config(checkpoint=tmp_path / "c"))


def test_buffers_that_are_not_persistent_are_saved_too(tmp_path):
    torch.manual_seed(0)
    model = Remembering()
    config = small.config(checkpoint=tmp_path / "c", stop_after=5)
    whole = train(copy.deepcopy(model), small.batch, small.loss, small.config())
    train(copy.deepcopy(model), small.batch, small.loss, config)
    resumed = train(copy.deepcopy(model), small.batch, small.loss, replace(config, stop_after=None))
    assert np.array_equal(resumed.losses, whole.losses)


# --- what is trained is kept, whatever ends the run -----------------------------------------------------------------


def full_after(n_saves, monkeypatch):
    saves = []

    def write(path, content):
        saves.append(path)
        if len(saves) > n_saves:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write_whole(path, content)

    monkeypatch.setattr(checkpoint, "write_whole", write)


@pytest.mark.parametrize(("every", "n_saves", "done"), [(None, 0, 12), (5, 0, 5), (5, 1, 10), (5, 2, 12)])
@both
def test_a_full_disk_loses_nothing(run, every, n_saves, done, tmp_path, monkeypatch):
    config = small.config(checkpoint=tmp_path / "c", checkpoint_every=every)
    expected = run(small.loss, small.config(stop_after=done))
    full_after(n_saves, monkeypatch)
    model = small.model()
    with pytest.raises(UnsavedCheckpoint, match=r"No space left on device\. The models hold what was trained") as error:
        run(small.loss, config, model)
    result = error.value.result if run is in_the_loop else error.value.result[0]
    assert isinstance(error.value, OSError)
    assert pickle.loads(pickle.dumps(error.value)).result is not None  # another process may have to send it
    assert result.model is model
    assert np.array_equal(result.losses, expected.losses)
    assert torch.equal(small.parameters(model), small.parameters(expected.model))
    assert (tmp_path / "c").exists() == (n_saves > 0)


def failing(at, error):
    calls = []

    def loss(model, batch):
        calls.append(1)
        if len(calls) == at:
            raise error
        return small.loss(model, batch)

    return loss


@both
def test_an_error_loses_nothing(run, tmp_path):
    config = small.config(checkpoint=tmp_path / "c")
    whole, five = run(small.loss, small.config()), run(small.loss, small.config(stop_after=5))
    model = small.model()
    with pytest.raises(ZeroDivisionError, match="oh"):  # an ensemble tries the loss once
        run(failing(6 if run is in_the_loop else 7, ZeroDivisionError("oh")), config, model)
    assert torch.equal(small.parameters(model), small.parameters(five.model))
    assert np.array_equal(run(small.loss, config).losses, whole.losses)


def test_an_error_stays_the_error_when_the_disk_is_full_too(tmp_path, monkeypatch):
    full_after(0, monkeypatch)
    with pytest.raises(ZeroDivisionError) as error:
        train(small.model(), small.batch, failing(6, ZeroDivisionError()), small.config(checkpoint=tmp_path / "c"))
    assert "cannot write checkpoint" in error.value.__notes__[0]


def test_a_run_that_fails_at_once_leaves_no_checkpoint(tmp_path):
    with pytest.raises(ZeroDivisionError):
        train(small.model(), small.batch, failing(1, ZeroDivisionError()), small.config(checkpoint=tmp_path / "c"))
    assert not list(tmp_path.iterdir())


def test_half_an_update_is_no_checkpoint(tmp_path, monkeypatch):
    config = small.config(checkpoint=tmp_path / "c", checkpoint_every=5)
    update = loop.Single.update

    def broken(self, step):
        update(self, step)
        if step == 7:
            raise MemoryError

    monkeypatch.setattr(loop.Single, "update", broken)
    with pytest.raises(MemoryError):
        train(small.model(), small.batch, small.loss, config)
    assert len(load(tmp_path / "c")[0]["losses"]) == 5


@both
def test_an_interrupt_while_saving_comes_too_late_to_lose_anything(run, tmp_path, monkeypatch):
    config = small.config(checkpoint=tmp_path / "c")

    def interrupted(path, content):
        signal.raise_signal(signal.SIGINT)
        return write_whole(path, content)

    monkeypatch.setattr(checkpoint, "write_whole", interrupted)
    result = run(small.loss, config)
    assert (result.n_steps, result.interrupted) == (12, False)
    assert len(load(tmp_path / "c")[0]["losses"]) == 12


def test_a_step_that_is_not_made_moves_no_statistics(tmp_path):
    def model():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))

    def interrupting(model, batch):
        value = small.loss(model, batch)
        if model[1].num_batches_tracked == 4:
            raise KeyboardInterrupt
        return value

    whole = train(model(), small.batch, small.loss, small.config())
    config = small.config(checkpoint=tmp_path / "c")
    stopped = train(model(), small.batch, interrupting, config, evaluate=small.loss)
    assert (stopped.n_steps, int(stopped.model[1].num_batches_tracked)) == (3, 3)
    resumed = train(model(), small.batch, small.loss, config)
    assert np.array_equal(resumed.losses, whole.losses)
    assert all(map(torch.equal, resumed.model.state_dict().values(), whole.model.state_dict().values()))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda model: model.norm.requires_grad_(False), "its model has nothing, this one norm.weight frozen"),
        (lambda model: setattr(model.norm, "eps", 0.1), "its model has (norm): LayerNorm((6,), eps=1e-05"),
    ],
)
def test_a_checkpoint_of_a_model_with_other_options_is_refused(change, what, tmp_path):
    config = small.config(n_steps=3, checkpoint=str(tmp_path / "c"))
    train(small.model(), small.batch, small.loss, config)
    other = small.model()
    change(other)
    with pytest.raises(DamagedCheckpoint, match=re.escape(what)):
        train(other, small.batch, small.loss, config)
