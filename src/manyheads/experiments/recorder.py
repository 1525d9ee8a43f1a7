"""Make a recording in resumable shards.

A shard that is done is a file; a run that was stopped goes on with the others. Shards run through joblib, so a Dask
cluster is one ``joblib.parallel_config`` away.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import joblib
import torch

import manyheads.experiments as experiments
from manyheads.files import write_whole
from manyheads.names import unknown
from manyheads.progress import progress, quiet
from manyheads.reporting import recordings


def registry() -> dict[str, ModuleType]:
    """Return the experiment module behind every recording name."""
    modules = [
        importlib.import_module(f"{experiments.__name__}.{info.name}")
        for info in pkgutil.iter_modules(experiments.__path__)
        if info.name not in ("common", "recorder")
    ]
    return {name: module for module in modules for name in getattr(module, "RECORDINGS", {})}


def record(name: str, shard_folder: str | Path = "_build/shards", n_jobs: int | None = None) -> Path:
    """Run the full profile of an experiment and write ``recordings/NAME.json``.

    Parameters
    ----------
    name
        A name of :func:`registry`.
    shard_folder
        Where finished shards wait for the others. They are kept per configuration and code, so that neither an
        old setting nor old code slips into a new recording.
    n_jobs
        Processes for joblib, each with its share of the threads; one a core by default.

    Raises
    ------
    ValueError
        For an unknown name: the list of those that exist.
    """
    known = registry()
    if name not in known:
        raise ValueError(unknown("recording", name, sorted(known)))
    module = known[name]
    config = module.RECORDINGS[name]
    code = recordings.code_digest(module.__name__)
    key = hashlib.sha256(json.dumps([recordings.plain(config), code], sort_keys=True).encode()).hexdigest()[:16]
    paths = {
        json.dumps(shard): Path(shard_folder) / name / key / f"{i:04d}.json"
        for i, shard in enumerate(module.shards(config))
    }
    missing = {shard: path for shard, path in paths.items() if not path.is_file()}

    def one(shard: str, path: Path) -> None:
        start = time.perf_counter()
        with quiet():
            part = recordings.plain(module.run_shard(config, json.loads(shard)))
        seconds = time.perf_counter() - start
        write_whole(path, json.dumps({"part": part, "seconds": seconds, "threads": torch.get_num_threads()}))

    n_jobs = n_jobs or joblib.cpu_count()
    # The bar shows the time left, estimated from the shards that are done.
    tasks = (joblib.delayed(one)(shard, path) for shard, path in missing.items())
    for _ in progress(
        joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks),
        total=len(paths),
        initial=len(paths) - len(missing),
        desc=f"recording {name}",
        unit="shard",
        delay=0,
        leave=True,
    ):
        pass
    done = [json.loads(path.read_text()) for path in paths.values()]
    return recordings.save(
        name,
        experiment=module.__name__,
        config=config,
        result=module.combine(config, [shard["part"] for shard in done]),
        first_losses=module.first_losses(replace(config, device="cpu"), recordings.REPLAYED_STEPS),
        wall_seconds=sum(shard["seconds"] for shard in done) / n_jobs,
        device=config.device if config.device == "cpu" else torch.cuda.get_device_name(config.device),
        processes=n_jobs,
        threads=max(shard["threads"] for shard in done),
    )


def replay(name: str) -> str | None:
    """Run the first steps of a recording again on the CPU; return what differs, or None when they agree."""
    recording = recordings.load(name)
    module = importlib.import_module(recording.experiment)
    config = module.Config(**{**recording.config, "device": "cpu"})  # recordings of a GPU keep a CPU replay too
    return recordings.compare_losses(recording.first_losses, module.first_losses(config, len(recording.first_losses)))
