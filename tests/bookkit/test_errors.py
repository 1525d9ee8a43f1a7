import errno
import os
import tempfile

import pytest

from bookkit.errors import BookError, in_words


def refused(code, *where):
    return OSError(code, os.strerror(code), *where)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BookError("no such chapter"), "no such chapter"),
        (OSError("no npm here"), "no npm here"),
        (
            refused(errno.EROFS, "/x/_build"),
            "/x/_build: Read-only file system; allow it, or work on a copy of the book",
        ),
        (refused(errno.EACCES, b"/x/_build"), "/x/_build: Permission denied; allow it, or work on a copy of the book"),
        (refused(errno.EEXIST, "_build"), "_build: File exists; another thing lies there: move it away"),
        (refused(errno.ENOTDIR, "_build/a"), "_build/a: Not a directory; another thing lies there: move it away"),
        (refused(errno.EIO, "_build"), "_build: Input/output error"),
        (refused(errno.ENOSPC, "/x/a"), "/x/a: No space left on device; free some space"),
        (
            refused(errno.ENOSPC),
            f"in the book or in {tempfile.gettempdir()}: No space left on device; free some space",
        ),
    ],
)
def test_what_where_and_what_to_do_in_one_line(error, words):
    assert in_words(error) == words
