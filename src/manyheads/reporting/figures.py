"""Figure style: colour-blind safe, readable on light and dark pages, the same bytes every time.

Figures are inline SVG. Their ink is ``currentColor``, so axes and text take the colour of the page around them.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from typing import Any

import matplotlib
from matplotlib.figure import Figure

# From the palette of Okabe and Ito, those that keep a contrast of 3:1 on white and on the book's dark background.
BLUE, VERMILION, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#C0689A", "#808080"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, GREY)
MARKERS = ("o", "s", "^", "D", "v")
LINES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1, 1, 1)))

INK = "#000000"  # matplotlib's own ink; the SVG says ``currentColor`` in its place
_STYLE = {
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
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
}


def canvas(width: float = 5.6, height: float = 3.4, rows: int = 1, columns: int = 1, **subplots: Any):
    """Return ``(figure, axes)`` in the book's style, without pyplot and so without its global state.

    Parameters
    ----------
    width, height
        Size in inches; 5.6 wide stays readable on a narrow phone.
    rows, columns, **subplots
        Passed to :meth:`matplotlib.figure.Figure.subplots`.
    """
    with matplotlib.rc_context(_STYLE):
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


def svg(figure: Figure, alt: str) -> str:
    """Return the figure as an HTML ``<figure>`` with an inline SVG that follows the page's text colour.

    Parameters
    ----------
    figure
        A figure from :func:`canvas`.
    alt
        What a reader who cannot see the figure needs to know.

    Raises
    ------
    ValueError
        When ``alt`` is empty.
    """
    if not alt.strip():
        raise ValueError("alt is empty: say in a sentence what the figure shows")
    salt = hashlib.sha256(alt.encode()).hexdigest()[:12]
    for ax in figure.axes:
        if ax.get_legend():  # its frame was styled when it was made, outside our style
            ax.get_legend().set_frame_on(False)
    buffer = io.StringIO()
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    label = html.escape(alt, quote=True)
    return f'<figure class="mh-figure" role="img" aria-label="{label}">{_inline(buffer.getvalue(), salt)}</figure>'


def _inline(text: str, salt: str) -> str:
    """Make a matplotlib SVG file fit to stand inside a page: small, theme-coloured, with ids of its own."""
    width = float(re.search(r'width="([\d.]+)pt"', text)[1]) * 4 / 3  # CSS pixels
    view = re.search(r'viewBox="[^"]+"', text)[0]
    css = f"width:100%;max-width:{width:.0f}px;height:auto;fill:currentColor;stroke-linejoin:round"
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    head = f'<svg aria-hidden="true" {names} {view} style="{css}">'
    body = text[text.index(">", text.index("<svg")) + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
    # Black fills are left out by matplotlib and inherit currentColor from the head; black strokes are written.
    body = body.replace(f"stroke: {INK}", "stroke: currentColor").replace(f"fill: {INK}", "fill: currentColor")
    # Ids must be unique in a page, so the salt goes in front of those that are used; the others go.
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', body))
    body = re.sub(r'\bid="([^"]+)"', lambda m: f'id="f{salt}-{m[1]}"' if m[1] in used else "", body)
    body = re.sub(r'((?:url\(|href=")#)', rf"\1f{salt}-", body)
    # A hundredth of a point is far below a pixel.
    body = re.sub(r"-?\d+\.\d{3,}(?![\d.])", lambda m: f"{float(m[0]):.2f}", body)
    body = re.sub(r"\s+", " ", body).replace("> <", "><").replace(" >", ">").replace("<defs></defs>", "")
    return head + body.strip()


class Picture:
    """An SVG figure as a cell output."""

    def __init__(self, figure: Figure, alt: str):
        self.html, self.alt = svg(figure, alt), alt

    def __repr__(self) -> str:
        return f"Figure: {self.alt}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.html}


def show(figure: Figure, alt: str) -> Picture:
    """Return the figure for the last line of a cell; ``alt`` is its text for readers who cannot see it."""
    return Picture(figure, alt)
