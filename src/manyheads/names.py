"""Messages for unknown names: what was asked for, what is nearest, what there is."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the message for a name that does not exist.

    >>> unknown("profile", "quik", ["quick", "gpu", "full"])
    "unknown profile 'quik'; did you mean 'quick'? known: quick, gpu, full"

    Parameters
    ----------
    kind
        What is being looked up, as a reader would call it: ``"profile"``, ``"claim id"``.
    name
        The value that was asked for.
    known
        All names that exist, in the order to show them.
    """
    known = list(known)
    near = get_close_matches(str(name), known, n=1, cutoff=0.4)
    hint = f" did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {name!r};{hint} known: {', '.join(known) if known else '(none)'}"
