"""Figures as inline SVG."""

from __future__ import annotations

import hashlib
import html
import io
import re
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from manyheads.reporting.figures.log_ticks import plain_log_ticks
from manyheads.reporting.figures.look import INK, STYLE


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
        When ``figure`` is not a figure, or ``alt`` is empty.
    """
    if not isinstance(figure, Figure):
        raise ValueError(f"figure={figure!r} is not a figure: make one with figures.canvas()")
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"alt={alt!r} is empty: say in a sentence what the figure shows")
    salt = hashlib.sha256(alt.encode()).hexdigest()[:12]
    for ax in figure.axes:
        if legend := ax.get_legend():  # its frame was styled when it was made, outside our style
            legend.set_frame_on(False)
    plain_log_ticks(figure)
    buffer = io.StringIO()
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": salt}):
        # ``savefig`` would draw twice, the first time for the layout, which drawing does anyway.
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})
    label = html.escape(alt, quote=True)
    return f'<figure class="mh-figure" role="img" aria-label="{label}">{_inline(buffer.getvalue(), salt)}</figure>'


def _inline(text: str, salt: str) -> str:
    """Make a matplotlib SVG file fit to stand inside a page: small, theme-coloured, with ids of its own."""
    [points] = re.findall(r'<svg[^>]* width="([\d.]+)pt"', text)
    [view] = re.findall(r'<svg[^>]* (viewBox="[^"]+")', text)
    width = float(points) * 4 / 3  # CSS pixels
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

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.html}


def show(figure: Figure, alt: str) -> Picture:
    """Return the figure for the last line of a cell; ``alt`` is its text for readers who cannot see it."""
    return Picture(figure, alt)
