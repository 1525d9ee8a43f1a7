"""Results of long runs, kept as small JSON files with their provenance.

A recording holds the result, the configuration, quantities to replay and where it all came from. Its digest shows when
somebody edited it by hand; replaying shows when the code no longer makes it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from manyheads.files import write_whole
from manyheads.names import unknown
from manyheads.reporting.paths import data_root

SCHEMA = 2
TOLERANCE = 1e-4  # relative, between platforms
NOISE = 1e-8  # absolute: what is this small is rounding, and differs between platforms


class DamagedRecording(ValueError):
    """A recording that cannot be trusted: which file, what is wrong, how to make it again."""


@dataclass(frozen=True)
class Recording:
    """One recording. ``result`` and ``config`` are plain JSON values; ``provenance`` says how they came about."""

    name: str
    experiment: str
    config: dict[str, Any]
    result: dict[str, Any]
    replay: dict[str, Any]
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
    replay: Mapping[str, Any],
    wall_seconds: float,
    device: str,
    processes: int = 1,
    threads: int = 1,
) -> Path:
    """Write a recording, whole or not at all, and return its path.

    Parameters
    ----------
    name
        File stem under ``recordings/``: letters, digits, ``-`` and ``_``.
    experiment
        Module that made it, such as ``"manyheads.experiments.budgets"``.
    config, result
        Dataclasses of numbers, strings, arrays and containers of these.
    replay
        Quantity to numbers that any machine finds again, for the replay test.
    wall_seconds, device, processes, threads
        How long the run took, on what, in how many processes of how many threads.

    Raises
    ------
    ValueError
        For a name with other characters, numbers that are not finite, values that JSON does not have, and nothing to
        replay. Nothing is written then.
    """
    import torch

    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise ValueError(f"name={name!r} must be letters, digits, '-' and '_', such as {_nearest(name)!r}")
    if not replay:
        raise ValueError("replay is empty: a recording needs a quantity that shows whether the code still makes it")
    content = {
        "schema": SCHEMA,
        "name": name,
        "experiment": experiment,
        "config": plain(config),
        "result": plain(result),
        "replay": plain(replay),
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
    if name not in names():
        raise ValueError(unknown("recording", name, names()))
    try:
        content = json.loads((folder() / f"{name}.json").read_text(encoding="utf-8"))
        kept = content.pop("digest")
        if content["schema"] != SCHEMA:
            raise damaged(name, f"schema {content['schema']}, this code reads {SCHEMA}")
        fields = {key: content[key] for key in Recording.__dataclass_fields__}
        honest = kept == digest(content)
    except DamagedRecording:
        raise
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(name, f"a field is missing ({error})") from error
    except (OSError, ValueError, RecursionError) as error:  # not JSON, not UTF-8, too deep, too many digits
        raise damaged(name, f"not readable as JSON ({error})") from error
    if not honest:
        raise damaged(name, "its content does not match its digest, so it was changed by hand")
    return Recording(**fields)


def damaged(name: str, what: str) -> DamagedRecording:
    """Return the error for a recording that cannot be trusted."""
    return DamagedRecording(f"{name}.json: {what}; make it again with: make record NAME={name}")


def digest(content: dict[str, Any]) -> str:
    """SHA-256 of the content in canonical JSON; numbers count to the last bit."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def plain(value: Any) -> Any:
    """Turn dataclasses, arrays and numpy scalars into JSON values; refuse anything else, and numbers JSON has not."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
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


def compare(recorded: Mapping[str, Any], replayed: Mapping[str, Any], tolerance: float = TOLERANCE) -> str | None:
    """Return what differs between recorded and replayed quantities, or None when they agree.

    Numbers agree when they differ by at most ``tolerance`` times the larger, or by less than rounding can make of an
    exact zero.
    """
    if set(recorded) != set(replayed):
        return f"recorded {', '.join(sorted(recorded))}; replayed {', '.join(sorted(replayed))}"
    for quantity in recorded:
        old, new = (np.asarray(values[quantity], dtype=float) for values in (recorded, replayed))
        if old.shape != new.shape:
            return f"{quantity}: {list(old.shape)} numbers recorded, {list(new.shape)} replayed"
        off = ~(np.abs(new - old) <= np.maximum(tolerance * np.maximum(np.abs(old), np.abs(new)), NOISE))
        if off.any():
            place = tuple(int(i) for i in np.argwhere(off)[0])
            return (
                f"{quantity}{list(place)}: recorded {old[place]:.8g}, replayed {new[place]:.8g}, "
                f"relative tolerance {tolerance:g}"
            )
    return None


def _nearest(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "budgets"
