"""When a chapter was last executed, for how long and on what: shown on the site, never stored in a notebook."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any


@dataclass(frozen=True)
class Facts:
    """Facts about one execution of a chapter."""

    executed: str
    seconds: float
    device: str
    python: str
    torch: str
    profile: str

    @classmethod
    def now(cls, seconds: float, profile: str) -> Facts:
        """Return the facts of a run that has just ended on this machine."""
        return cls(
            executed=datetime.now(UTC).date().isoformat(),
            seconds=round(seconds, 1),
            device=device(),
            python=platform.python_version(),
            torch=_torch_version(),
            profile=profile,
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Facts:
        """Read what :meth:`to_json` gives; a key too few or too many, or a wrong type, raises ``TypeError``."""
        facts = cls(**content)
        if not all(isinstance(v, (float, int) if k == "seconds" else str) for k, v in asdict(facts).items()):
            raise TypeError(f"facts of another type: {content}")
        return facts

    def to_json(self) -> dict[str, Any]:
        """Return the facts as plain values."""
        return asdict(self)

    @property
    def took(self) -> str:
        """The duration in words."""
        return f"{self.seconds:.0f} s" if self.seconds < 90 else f"{self.seconds / 60:.0f} min"


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def device() -> str:
    """Return the machine in words: the GPU that torch sees, else the number of CPU cores that this process may use."""
    cpu = f"{cores()} CPU core{'s' if cores() != 1 else ''}"
    try:
        import torch
    except ImportError:
        return cpu
    return f"{torch.cuda.get_device_name()} and {cpu}" if torch.cuda.is_available() else cpu


def _torch_version() -> str:
    try:
        return version("torch").split("+")[0]
    except PackageNotFoundError:
        return ""
