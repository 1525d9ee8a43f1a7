"""What can go wrong, in words a person can act on."""

from __future__ import annotations

import errno
import os
import tempfile

_REMEDIES = {
    "free some space": (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    "allow it, or work on a copy of the book": (errno.EACCES, errno.EPERM, errno.EROFS),
    "another thing lies there: move it away": (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY),
}


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


def in_words(error: BookError | OSError) -> str:
    """Return the message of an expected failure; of the system's, what it refused, where, and what can be done."""
    if isinstance(error, BookError) or error.strerror is None:
        return str(error)
    # where a disk is full the system names no file
    where = error.filename or f"in the book or in {tempfile.gettempdir()}"
    remedy = next((remedy for remedy, codes in _REMEDIES.items() if error.errno in codes), "")
    return f"{os.fsdecode(where)}: {error.strerror}" + (f"; {remedy}" if remedy else "")
