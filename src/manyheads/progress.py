"""Progress bars that appear after two seconds and never end up in stored output."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm.auto import tqdm

STORED = "MANYHEADS_EXPLORE"
"""Set by whoever runs a notebook to keep its output: ``static`` for a page whose explorers move, ``still`` for a run
whose explorers nobody moves, such as a comparison with what is stored."""


def output_is_stored() -> bool:
    """Whether this process fills a page rather than a person's screen."""
    return os.environ.get(STORED) in ("static", "still")


def states_are_stored() -> bool:
    """Whether explorers draw all their states beforehand."""
    return os.environ.get(STORED) == "static"


@contextmanager
def quiet() -> Iterator[None]:
    """Show no progress bar inside the block, for work that is itself a step of a bar."""
    before = os.environ.get(STORED)
    os.environ[STORED] = "static"
    try:
        yield
    finally:
        if before is None:
            del os.environ[STORED]
        else:
            os.environ[STORED] = before


def progress(iterable: Iterable | None = None, **options: Any) -> tqdm:
    """Return :class:`tqdm.auto.tqdm`, shown after two seconds of work and cleared when done; see its options."""
    return tqdm(iterable, **{"delay": 2, "leave": False, "disable": output_is_stored(), **options})
