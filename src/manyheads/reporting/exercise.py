"""Checks of a reader's answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def exercise(check: Callable[..., Any], *answers: Any, hint: str) -> None:
    """Print whether a reader's answers are right; print nothing while they are all None.

    >>> exercise(lambda n: n * n == 49, 7, hint="which number is its own root?")
    right

    Parameters
    ----------
    check
        Called with the answers; true when they are right. What it raises is told in a line: a malformed answer is not
        worth a traceback.
    *answers
        What the reader writes: numbers, functions, tensors.
    hint
        Said when they are not right, as a question or a place to look.

    Raises
    ------
    ValueError
        Without an answer to check or without a hint.
    """
    if not answers:
        raise ValueError("exercise needs the answers to check: exercise(check, answer, hint=...)")
    if not hint.strip():
        raise ValueError(f"hint={hint!r} is empty: say where to look")
    if all(answer is None for answer in answers):
        return
    missing = sum(answer is None for answer in answers)
    if missing:
        print(f"not yet: {missing} of {len(answers)} answers are still None")  # noqa: T201, printing is its purpose
        return
    try:
        outcome = "right" if check(*answers) else f"not yet: {hint}"
    except Exception as error:
        outcome = f"not yet: this answer cannot be checked ({type(error).__name__}: {error}). {hint}"
    print(outcome)  # noqa: T201
