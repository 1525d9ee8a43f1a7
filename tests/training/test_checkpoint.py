import json
import re

import pytest
import torch
from safetensors.torch import save_file

from manyheads.training import DamagedCheckpoint, train
from manyheads.training.checkpoint import load, save
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
