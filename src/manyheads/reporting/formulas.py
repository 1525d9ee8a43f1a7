"""Formulas in the words of the ledger: TeX between dollar signs, as HTML that needs no script.

MathJax typesets the pages of the book. Verdict cards also stand in JupyterLab and in Colab, which leaves TeX in HTML
outputs as it was typed, so their formulas are made of letters, ``<sub>`` and ``<sup>``. Only what the ledger needs of
TeX is known here; anything else is refused when the ledger is read.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from manyheads.names import unknown

SYMBOLS = {
    **{"\\varepsilon": "<i>ε</i>", "\\beta": "<i>β</i>", "\\eta": "<i>η</i>", "\\Delta": "Δ", "\\infty": "∞"},
    **{"\\le": "≤", "\\ge": "≥", "\\ne": "≠", "\\approx": "≈", "\\times": "×", "\\cdot": "·", "\\pm": "±"},
    **{"\\lceil": "⌈", "\\rceil": "⌉", "\\,": "\u2009"},
    **{f"\\{name}": name for name in ("log", "exp", "max", "min", "tanh")},
}
_FORMULA = re.compile(r"\$([^$]+)\$")
_TOKEN = re.compile(r"\\(?:[a-zA-Z]+|.)|.", flags=re.S)


def to_html(text: str) -> str:
    """Return ``text`` as HTML, escaped, with its formulas set.

    >>> to_html("at least $\\\\varepsilon^{-k}$")
    'at least <i>ε</i><sup>−<i>k</i></sup>'

    Raises
    ------
    ValueError
        For TeX that is not known here, or with braces that do not match.
    """
    pieces = _FORMULA.split(text)
    pieces[::2] = map(html.escape, pieces[::2])
    pieces[1::2] = map(_formula, pieces[1::2])
    return "".join(pieces)


def _formula(tex: str) -> str:
    tokens = _TOKEN.findall(tex)
    try:
        return "".join(_until("", tokens))
    except IndexError:
        raise ValueError(f"the formula ${tex}$ has braces that do not match, or an index without a content") from None


def _until(stop: str, tokens: list[str]) -> Iterator[str]:
    """Set tokens up to ``stop``, or all of them; they are taken off the front of the list."""
    while tokens if not stop else tokens[0] != stop:
        yield _atom(tokens)
    if stop:
        tokens.pop(0)


def _atom(tokens: list[str]) -> str:
    token = tokens.pop(0)
    if token == "{":
        return "".join(_until("}", tokens))
    if token == "}":
        raise IndexError(token)
    if token in ("^", "_"):
        tag = "sup" if token == "^" else "sub"
        return f"<{tag}>{_atom(tokens)}</{tag}>"
    if token == "\\sqrt":
        return f"√({_atom(tokens)})"
    if token.startswith("\\"):
        if token not in SYMBOLS:
            raise ValueError(unknown("TeX command", token, ["\\sqrt", *SYMBOLS]))
        return SYMBOLS[token]
    if token.isalpha():
        return f"<i>{token}</i>"
    return html.escape(token.replace("-", "−"))
