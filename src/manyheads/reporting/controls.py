"""What explorers and trials share: axes, their sliders, the panel around them, and the box that shows an error."""

from __future__ import annotations

import html
import itertools
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

WIDE = {"width": "100%"}
_LABEL, _READOUT = 16, 9  # characters: longer labels wrap, longer values get a line of their own
# It comes with the widgets, since JupyterLab and Colab know nothing of the book's own style sheet. Names of classes are
# those that ipywidgets 7 and 8 share.
_STYLE = """<style>
.mh-explorer, .mh-explorer .widget-vbox { overflow: visible; }
.mh-explorer .widget-hslider { align-items: center; display: grid; height: auto;
  grid-template: minmax(1.75rem, auto) auto / auto minmax(4rem, 1fr) 5rem; }
.mh-explorer .widget-label { height: auto; line-height: 1.3; overflow: visible; white-space: normal; }
.mh-explorer .widget-readout { max-width: none; min-width: 0; }
.mh-explorer .mh-words .widget-readout { grid-area: 2 / 2 / auto / span 2; height: auto; line-height: 1.3;
  text-align: left; white-space: normal; }
.mh-error { border-left: 0.4rem solid #D55E00; overflow-x: auto; padding: 0.25rem 1rem; }
</style>"""


@dataclass(frozen=True)
class Axis:
    """One slider: the values it takes, the label beside it, and the value it starts at (the first by default)."""

    values: Sequence[Any]
    label: str = ""
    start: Any = None
    format: Callable[[Any], str] = str


def resolve(axes: Mapping[str, Axis | Sequence[Any]]) -> dict[str, Axis]:
    """Fill in labels and starts; refuse an axis without values, with repeated ones or a foreign start."""
    return {name: _resolve(name, axis if isinstance(axis, Axis) else Axis(axis)) for name, axis in axes.items()}


def _resolve(name: str, axis: Axis) -> Axis:
    values = list(axis.values)
    if not values:
        raise ValueError(f"axis {name} has no values")
    if any(a == b for a, b in itertools.combinations(values, 2)):
        raise ValueError(f"axis {name} repeats a value: {values}")
    texts = [axis.format(value) for value in values]
    if not all(isinstance(text, str) for text in texts) or len(set(texts)) < len(texts):
        raise ValueError(f"axis {name} must give each value a text of its own; its format gives {texts}")
    start = values[0] if axis.start is None else axis.start
    if start not in values:
        raise ValueError(f"axis {name} cannot start at {start!r}; its values are {values}")
    return Axis(values, axis.label or name.replace("_", " "), start, axis.format)


def in_words(axes: Mapping[str, Axis], values: Mapping[str, Any]) -> str:
    """Name a state: ``"Heads H = 4, Tokens T = 16"``."""
    return ", ".join(f"{axes[name].label} = {axes[name].format(value)}" for name, value in values.items())


def sliders(axes: Mapping[str, Axis]) -> dict[str, widgets.SelectionSlider]:
    """Return a slider for every resolved axis, all starting at the same place; ``index`` numbers an axis' values."""
    width = f"{min(max(len(axis.label) for axis in axes.values()) + 1, _LABEL)}ch"
    return {name: _slider(axis, width) for name, axis in axes.items()}


def _slider(axis: Axis, width: str) -> widgets.SelectionSlider:
    made = widgets.SelectionSlider(
        options=[(axis.format(value), index) for index, value in enumerate(axis.values)],
        index=axis.values.index(axis.start),
        description=axis.label,
        continuous_update=True,
        style={"description_width": width},
        layout={"width": "100%", "max_width": "34rem"},
    )
    if any(len(axis.format(value)) > _READOUT for value in axis.values):
        made.add_class("mh-words")
    return made


def panel(sliders: Mapping[str, widgets.SelectionSlider], *below: widgets.Widget) -> widgets.VBox:
    """Put sliders above other widgets."""
    style = widgets.HTML(_STYLE, layout={"display": "none"})
    made = widgets.VBox([widgets.VBox([style, *sliders.values()], layout=WIDE), *below], layout=WIDE)
    made.add_class("mh-explorer")
    return made


def failure(error: BaseException, state: str) -> str:
    """Return the HTML that stands where a figure would, had drawing ``state`` not raised ``error``."""
    kind, message = type(error).__name__, html.escape(str(error))
    trace = html.escape("".join(traceback.format_exception(error)))
    return (
        f'<div class="mh-error" role="alert"><p><strong>{kind}{":" if message else ""}</strong> {message}</p>'
        f"<p>No figure for {html.escape(state)}.</p>"
        f"<details><summary>Traceback</summary><pre>{trace}</pre></details></div>"
    )
