"""How every figure looks: sizes, inks, and the marks that tell series apart."""

from __future__ import annotations

from typing import Any

import matplotlib
from matplotlib.figure import Figure

# From the palette of Okabe and Ito, those that keep a contrast of 3:1 on white and on the book's dark background.
BLUE, VERMILION, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#C0689A", "#808080"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # more than colours, so that a sixth series differs from the first
LINES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1, 1, 1)))

INK = "#000000"  # matplotlib's own ink; the SVG says ``currentColor`` in its place
STYLE: dict[Any, Any] = {  # matplotlib types a key as one of its own 300 names
    "font.size": 11,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "svg.fonttype": "none",
}


def canvas(
    width: float = 5.6, height: float = 3.4, rows: int = 1, columns: int = 1, **subplots: Any
) -> tuple[Figure, Any]:
    """Return ``(figure, axes)`` in the book's style, without pyplot and so without its global state.

    Parameters
    ----------
    width, height
        Size in inches; 5.6 wide stays readable on a narrow phone.
    rows, columns, **subplots
        Passed to :meth:`matplotlib.figure.Figure.subplots`.
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, **subplots)


def style(index: int) -> dict[str, Any]:
    """Colour, marker and line of the ``index``-th series: three ways to tell it apart, not colour alone."""
    return {
        "color": PALETTE[index % len(PALETTE)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINES[index % len(LINES)],
        "linewidth": 2,
        "markersize": 5,
    }
