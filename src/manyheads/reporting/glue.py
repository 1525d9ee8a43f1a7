"""Give a computed value a name that prose can use, without myst-nb, so that the same cell runs in Colab."""

from __future__ import annotations

import re
from typing import Any


def glue(name: str, value: Any, format: str = "") -> str:
    """Publish ``value`` under ``name`` for the role ``{glue:text}`` and return the text a reader will see.

    Prose never carries a measured number by hand: it names one of these.

    Parameters
    ----------
    name
        Letters, digits, ``-`` and ``_``.
    value
        Anything that an f-string can print.
    format
        What stands after the colon in an f-string, such as ``".2f"`` or ``","``.

    Raises
    ------
    ValueError
        When ``name`` has other characters.
    """
    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError(f"name={name!r} may hold letters, digits, '-' and '_' only")
    text = f"{value:{format}}"
    try:
        from IPython import get_ipython
        from IPython.display import publish_display_data
    except ImportError:  # a plain script has no page to publish to
        return text
    if get_ipython() is not None:
        # The key and the prefix are those that myst-nb reads; the prefix keeps the value out of the page itself.
        publish_display_data(
            {"application/papermill.record/text/plain": text},
            {"scrapbook": {"name": name, "mime_prefix": "application/papermill.record/"}},
        )
    return text
