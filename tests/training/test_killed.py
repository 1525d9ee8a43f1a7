"""A run that is killed hard, again and again, ends with the numbers of one that was left in peace."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
RUN = """
import sys, time, numpy as np
from dataclasses import replace
from manyheads.training import ensemble, train
from tests.training import small

kind, pause, checkpoint, out = sys.argv[1], float(sys.argv[2]), sys.argv[3] or None, sys.argv[4]

def batch(generator, n):
    time.sleep(pause)
    return small.batch(generator, n)

every = 3 if checkpoint else None
config = small.config(n_steps=150, clip_norm=0.5, eval_every=20, checkpoint=checkpoint, checkpoint_every=every)
print("started", flush=True)
if kind == "loop":
    results = [train(small.model(), batch, small.loss, config)]
else:
    configs = [replace(config, seed=seed) for seed in range(3)]
    results = ensemble.train(small.model, batch, small.loss, configs)
evaluations = [result.evaluations for result in results]
np.savez(out, losses=[result.losses for result in results], evaluations=evaluations)
"""


def start(*arguments) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "started\n", process.stderr.read()
    return process


def size(path: Path) -> int:
    """Bytes of the checkpoint, which grows with the losses; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def finish(process: subprocess.Popen) -> None:
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


@pytest.mark.slow  # a process for every life
@pytest.mark.parametrize("kind", ["loop", "ensemble"])
def test_killed_at_random_moments_it_ends_with_the_same_bits(kind, tmp_path):
    peace = start(kind, 0, "", tmp_path / "peace.npz")
    checkpoint, moments, sizes = tmp_path / "c", random.Random(kind), [0]
    pause = 0.01 if kind == "loop" else 0.004  # about two seconds for a whole run
    for _ in range(2):
        process = start(kind, pause, checkpoint, tmp_path / "killed.npz")
        while size(checkpoint) == sizes[-1]:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.3))
        process.kill()
        process.communicate()
        assert process.returncode == -9
        sizes.append(size(checkpoint))
    assert sizes == sorted(set(sizes))  # every part went on from the one before
    assert not (tmp_path / "killed.npz").exists()

    finish(start(kind, 0, checkpoint, tmp_path / "resumed.npz"))
    finish(peace)
    expected, resumed = np.load(tmp_path / "peace.npz"), np.load(tmp_path / "resumed.npz")
    assert expected["losses"].shape == (1 if kind == "loop" else 3, 150)
    for name in ("losses", "evaluations"):
        assert np.array_equal(resumed[name], expected[name])
