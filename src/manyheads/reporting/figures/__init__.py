"""Figure style: colour-blind safe, readable on light and dark pages, the same bytes every time.

Figures are inline SVG. Their ink is ``currentColor``, so axes and text take the colour of the page around them.
"""

from manyheads.reporting.figures.log_ticks import log_axis
from manyheads.reporting.figures.look import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LINES,
    MARKERS,
    PALETTE,
    PURPLE,
    VERMILION,
    canvas,
    style,
)
from manyheads.reporting.figures.means import band, error_bars
from manyheads.reporting.figures.picture import Picture, show, svg

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "LINES",
    "MARKERS",
    "PALETTE",
    "PURPLE",
    "VERMILION",
    "Picture",
    "band",
    "canvas",
    "error_bars",
    "log_axis",
    "show",
    "style",
    "svg",
]
