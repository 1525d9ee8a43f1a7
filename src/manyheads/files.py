"""Write files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write ``content`` to ``path`` so that a reader, or an interrupt, never sees half of it.

    The content goes to a temporary file in the same folder, is flushed to disk and then renamed over ``path``.
    Parent folders are made. Text is written as UTF-8 with ``\\n`` line ends.

    Raises
    ------
    OSError
        When the folder cannot be written; ``path`` is then as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode("utf-8") if isinstance(content, str) else content
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(beside).chmod(0o666 & ~umask)  # mkstemp makes files private; ours are ordinary ones
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return path
