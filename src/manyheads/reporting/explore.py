"""Explorers: a figure with sliders that moves in the book with no kernel, in Jupyter, and in Colab.

- **In the book** every state is drawn beforehand and the sliders pick one in the browser (``Stack`` and ``jslink``).
- **With a kernel** the figure is drawn when a slider moves, into one widget that is overwritten. This also serves
  ipywidgets 7 in Colab, which has no ``Stack``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from manyheads.progress import progress, states_are_stored
from manyheads.reporting.controls import WIDE, Axis, failure, in_words, panel, resolve, sliders
from manyheads.reporting.figures import svg

MAX_STATES = 60  # drawn beforehand, a page of this many figures is still light


class Explorer:
    """A movable figure; :func:`explore` makes one. ``widget`` is the ipywidgets tree, ``picture`` its first state."""

    def __init__(self, draw: Callable[..., Figure | tuple[Figure, str]], axes: dict[str, Axis], static: bool):
        self._draw, self.axes, self.static = draw, axes, static
        self._start = {name: axis.start for name, axis in axes.items()}
        self.picture = self.state(**self._start)
        self.sliders = sliders(axes)
        self.widget = panel(self.sliders, self._stack() if static else self._live())

    def state(self, **values: Any) -> str:
        """Draw one state and return its HTML figure; ``values`` names every axis.

        Raises
        ------
        RuntimeError
            When drawing raises: which state, and what went wrong.
        """
        try:
            return self._picture(values)
        except Exception as error:
            words = in_words(self.axes, values)
            raise RuntimeError(f"no figure for {words}: {type(error).__name__}: {error}") from error

    def _picture(self, values: dict[str, Any]) -> str:
        drawn, words = self._draw(**values), in_words(self.axes, values)
        figure, alt = drawn if isinstance(drawn, tuple) else (drawn, "")
        return svg(figure, f"{alt} ({words})" if alt else words)

    def _stack(self) -> widgets.Widget:
        """Nested stacks, one level an axis; every stack of a level follows that level's slider."""
        states = progress(total=math.prod(len(axis.values) for axis in self.axes.values()), desc="drawing states")

        def level(fixed: dict[str, Any]) -> widgets.Widget:
            if len(fixed) == len(self.axes):
                states.update()
                return _figure(self.picture if fixed == self._start else self.state(**fixed))
            name = list(self.axes)[len(fixed)]
            children = [level({**fixed, name: value}) for value in self.axes[name].values]
            stack = widgets.Stack(children, selected_index=self.sliders[name].index, layout=WIDE)
            widgets.jslink((self.sliders[name], "index"), (stack, "selected_index"))
            return stack

        with states:
            return level({})

    def _live(self) -> widgets.HTML:
        figure = _figure(self.picture)

        def redraw(_change: Any) -> None:
            values = {name: axis.values[self.sliders[name].index] for name, axis in self.axes.items()}
            try:
                figure.value = self._picture(values)
            except (Exception, KeyboardInterrupt) as error:  # the picture of another state must not stay
                figure.value = failure(error, in_words(self.axes, values))

        for slider in self.sliders.values():
            slider.observe(redraw, "index")
        return figure

    def __repr__(self) -> str:
        return "Explorer: " + ", ".join(
            f"{axis.label} in {{{', '.join(map(axis.format, axis.values))}}}" for axis in self.axes.values()
        )

    def _ipython_display_(self) -> None:
        from IPython.display import publish_display_data

        # One bundle: the widget where widgets live, else the first state as a still figure.
        publish_display_data(
            {
                "text/plain": repr(self),
                "text/html": self.picture,
                "application/vnd.jupyter.widget-view+json": {
                    "version_major": 2,
                    "version_minor": 0,
                    "model_id": self.widget.model_id,
                },
            }
        )


def explore(
    draw: Callable[..., Figure | tuple[Figure, str]], static: bool | None = None, **axes: Axis | Sequence[Any]
) -> Explorer:
    """Make a figure movable along named axes.

    Parameters
    ----------
    draw
        Called with one keyword an axis; returns a figure of :func:`manyheads.reporting.figures.canvas`, or a pair
        ``(figure, alt text)``. It must depend on its arguments only. An error that it raises while a slider moves
        is shown where the figure was.
    static
        Draw all states beforehand (True) or on demand (False). By default: beforehand when the output is stored, as
        in the book; on demand with a person at the kernel, and wherever ipywidgets has no ``Stack``.
    **axes
        An :class:`manyheads.reporting.controls.Axis`, or just its values. At most 60 states in all.

    Raises
    ------
    ValueError
        Without an axis, with an empty axis, a repeated value or text, a start that is not a value, or over 60 states.
    RuntimeError
        When drawing the first state raises, or any state when they are drawn beforehand. Also for ``static=True`` with
        an ipywidgets that has no ``Stack``.
    """
    if not axes:
        raise ValueError("explore needs at least one axis, for example explore(draw, n_heads=[1, 2, 4])")
    resolved = resolve(axes)
    states = math.prod(len(axis.values) for axis in resolved.values())
    if states > MAX_STATES:
        sizes = " x ".join(f"{len(axis.values)} {name}" for name, axis in resolved.items())
        raise ValueError(f"{sizes} = {states} states, at most {MAX_STATES} fit a page: thin out an axis")
    has_stack = hasattr(widgets, "Stack")
    if static and not has_stack:
        raise RuntimeError(
            f"ipywidgets {widgets.__version__} has no Stack, so states cannot be drawn beforehand; use static=False"
        )
    return Explorer(draw, resolved, states_are_stored() and has_stack if static is None else static)


def _figure(html: str) -> widgets.HTML:
    return widgets.HTML(html, layout=WIDE)
