"""What can go wrong, in words a person can act on."""

from __future__ import annotations


class BookError(Exception):
    """An expected failure. The command line prints its message, without a traceback, and exits with 1."""


class ParameterError(BookError, ValueError):
    """A parameter that a chapter does not have, or a value that the parameter cannot take."""


class NotebookError(BookError, ValueError):
    """A notebook that must not be committed or published; ``problems`` lists every reason."""

    def __init__(self, name: str, problems: list[str]):
        self.problems = problems
        super().__init__("\n".join([f"{name} cannot be used:", *(f"  - {problem}" for problem in problems)]))


class ClaimError(BookError):
    """Claims that are not judged exactly once, or not where a reader of the code can see it."""


class SiteError(BookError):
    """A site that did not build without a warning."""
