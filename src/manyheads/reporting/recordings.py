"""Results of long runs, kept as small JSON files with their provenance.

A recording holds the result, the configuration, the first training losses and where it all came from. Its digest
shows when somebody edited it by hand; replaying its first steps shows when the code no longer makes it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import platform
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from manyheads.files import write_whole
from manyheads.names import unknown
from manyheads.reporting.paths import data_root

SCHEMA = 1
REPLAYED_STEPS = 20
TOLERANCE = 1e-4  # relative, between platforms


class DamagedRecording(ValueError):
    """A recording that cannot be trusted: which file, what is wrong, how to make it again."""


@dataclass(frozen=True)
class Recording:
    """One recording. ``result`` and ``config`` are plain JSON values; ``provenance`` says how they came about."""

    name: str
    experiment: str
    config: dict[str, Any]
    result: dict[str, Any]
    first_losses: list[float]
    provenance: dict[str, Any]

    def credit(self) -> str:
        """One line for readers: date, device, time and versions of the run."""
        p = self.provenance
        return (
            f"Recorded {p['date']} on {p['device']} ({p['processes']} x {p['threads']} threads) "
            f"in {p['wall_seconds'] / 60:.1f} min "
            f"with torch {p['torch']}, numpy {p['numpy']}, Python {p['python']}."
        )


def folder() -> Path:
    """Where recordings live."""
    return data_root() / "recordings"


def names() -> list[str]:
    """Return the names of all recordings."""
    return sorted(path.stem for path in folder().glob("*.json"))


def save(
    name: str,
    *,
    experiment: str,
    config: Any,
    result: Any,
    first_losses: list[float],
    wall_seconds: float,
    device: str,
    processes: int = 1,
    threads: int = 1,
) -> Path:
    """Write a recording, whole or not at all, and return its path.

    Parameters
    ----------
    name
        File stem under ``recordings/``.
    experiment
        Module that made it, such as ``"manyheads.experiments.budgets"``.
    config, result
        Dataclasses of numbers, strings, arrays and containers of these.
    first_losses
        Losses of the first steps, for the replay test.
    wall_seconds, device, processes, threads
        How long the run took, on what, in how many processes of how many threads.
    """
    import torch

    content = {
        "schema": SCHEMA,
        "name": name,
        "experiment": experiment,
        "config": plain(config),
        "result": plain(result),
        "first_losses": [float(loss) for loss in first_losses[:REPLAYED_STEPS]],
        "provenance": {
            "date": datetime.now(UTC).date().isoformat(),
            "device": device,
            "processes": processes,
            "threads": threads,
            "wall_seconds": round(wall_seconds, 1),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "code": code_digest(experiment),
        },
    }
    content["digest"] = digest(content)
    return write_whole(folder() / f"{name}.json", json.dumps(content, indent=1) + "\n")


def load(name: str) -> Recording:
    """Read a recording and check that it is whole and as it was written.

    Raises
    ------
    ValueError
        For an unknown name: the list of those that exist.
    DamagedRecording
        When the file cannot be parsed, lacks a field, or does not match its digest.
    """
    path = folder() / f"{name}.json"
    if not path.is_file():
        raise ValueError(unknown("recording", name, names()))
    again = f"make it again with: make record NAME={name}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kept = content.pop("digest")
        if content["schema"] != SCHEMA:
            raise DamagedRecording(f"{path.name}: schema {content['schema']}, this code reads {SCHEMA}; {again}")
        fields = {key: content[key] for key in Recording.__dataclass_fields__}
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamagedRecording(f"{path.name}: not readable as JSON ({error}); {again}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise DamagedRecording(f"{path.name}: a field is missing ({error}); {again}") from error
    if kept != digest(content):
        raise DamagedRecording(
            f"{path.name}: its content does not match its digest, so it was changed by hand; {again}"
        )
    return Recording(**fields)


def digest(content: dict[str, Any]) -> str:
    """SHA-256 of the content in canonical JSON; numbers count to the last bit."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def plain(value: Any) -> Any:
    """Turn dataclasses, arrays and numpy scalars into JSON values; refuse anything else, and numbers JSON has not."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not np.isfinite(value):
            raise ValueError(f"a recording holds finite numbers only, got {value}")
        return value
    raise ValueError(f"a recording cannot hold a {type(value).__name__}")


def code_digest(module: str) -> str:
    """SHA-256 over the sources of ``module`` and of every ``manyheads`` module it imports, directly or not."""
    sources: dict[str, bytes] = {}
    queue = [module]
    while queue:
        name = queue.pop()
        spec = importlib.util.find_spec(name) if name not in sources else None
        if spec is None or not spec.origin:
            continue
        sources[name] = Path(spec.origin).read_bytes()
        for node in ast.walk(ast.parse(sources[name])):
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                found = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            queue += [name for name in found if name.split(".")[0] == "manyheads" and _is_module(name)]
    total = hashlib.sha256()
    for name in sorted(sources):
        total.update(name.encode() + b"\0" + sources[name] + b"\0")
    return total.hexdigest()


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the last part is a class or function, not a module
        return False


def compare_losses(recorded: list[float], replayed: list[float], tolerance: float = TOLERANCE) -> str | None:
    """Return what differs between recorded and replayed losses, or None when they agree to a relative ``tolerance``."""
    if len(recorded) != len(replayed):
        return f"{len(recorded)} losses recorded, {len(replayed)} replayed"
    for step, (old, new) in enumerate(zip(recorded, replayed, strict=True)):
        if not abs(new - old) <= tolerance * max(abs(old), abs(new)):
            return f"step {step}: recorded {old:.8g}, replayed {new:.8g}, relative tolerance {tolerance:g}"
    return None
