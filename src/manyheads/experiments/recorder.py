"""Make a recording in resumable points, and replay one.

A point that is done is a file; a run that was stopped goes on with the others. Points run through joblib, so a Dask
cluster is one ``joblib.parallel_config`` away.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import joblib
import torch

from manyheads import experiments
from manyheads.experiments import sweep
from manyheads.files import write_whole
from manyheads.names import unknown
from manyheads.progress import progress, quiet
from manyheads.reporting import recordings


def registry() -> dict[str, ModuleType]:
    """Return the experiments that can be recorded, by name: the modules that measure."""
    names = (f"{experiments.__name__}.{info.name}" for info in pkgutil.iter_modules(experiments.__path__))
    modules = {name.rpartition(".")[2]: importlib.import_module(name) for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "measure")}


def record(name: str, folder: str | Path = "_build/points", n_jobs: int | None = None) -> Path:
    """Run the full profile of an experiment and write ``recordings/NAME.json``.

    Parameters
    ----------
    name
        A name of :func:`registry`.
    folder
        Where finished points wait for the others. They are kept per configuration and code, so that neither an old
        setting nor old code slips into a new recording.
    n_jobs
        Processes for joblib, each with its share of the threads; one a core by default.

    Raises
    ------
    ValueError
        For an unknown name: the list of those that exist.
    """
    experiment = _experiment(name)
    config = experiment.Config.profile("full")
    code = recordings.code_digest(experiment.__name__)
    key = hashlib.sha256(json.dumps([recordings.plain(config), code], sort_keys=True).encode()).hexdigest()[:16]
    paths = [Path(folder) / name / key / f"{i:04d}.json" for i in range(len(sweep.points(config)))]
    n_jobs = n_jobs or joblib.cpu_count()
    measure_all(experiment, config, paths, n_jobs)
    done = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return recordings.save(
        name,
        experiment=experiment.__name__,
        config=config,
        result=sweep.combine(config, [point["measured"] for point in done]).to_json(),
        replay=experiment.replay(replace(config, device="cpu")),
        wall_seconds=sum(point["seconds"] for point in done) / n_jobs,
        device=config.device if config.device == "cpu" else torch.cuda.get_device_name(config.device),
        processes=n_jobs,
        threads=max(point["threads"] for point in done),
    )


def replay(name: str) -> str | None:
    """Find the replayed quantities of a recording again, on the CPU; return what differs, or None when they agree."""
    recording = recordings.load(name)
    experiment = _experiment(name)
    config = experiment.Config(**{**recording.config, "device": "cpu"})  # recordings of a GPU keep a CPU replay too
    return recordings.compare(recording.replay, experiment.replay(config, recording.replay))


def measure_all(experiment: ModuleType, config: sweep.Config, paths: Sequence[Path], n_jobs: int) -> None:
    """Measure every point whose file is missing, and write it there."""
    points = zip(sweep.points(config), paths, strict=True)
    tasks = [joblib.delayed(_measure)(experiment.__name__, config, *pair) for pair in points if not pair[1].is_file()]
    # The bar shows the time left, estimated from the points that are done.
    for _ in progress(
        joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks),
        total=len(paths),
        initial=len(paths) - len(tasks),
        desc=experiment.__name__,
        unit="point",
        delay=0,
        leave=True,
    ):
        pass


def _measure(experiment: str, config: sweep.Config, point: dict[str, Any], path: Path) -> None:
    start = time.perf_counter()
    with quiet():
        measured = sweep.plain(importlib.import_module(experiment).measure(config, **point))
    seconds = time.perf_counter() - start
    write_whole(path, json.dumps({"measured": measured, "seconds": seconds, "threads": torch.get_num_threads()}))


def _experiment(name: str) -> ModuleType:
    known = registry()
    if name not in known:
        raise ValueError(unknown("recording", name, sorted(known)))
    return known[name]
