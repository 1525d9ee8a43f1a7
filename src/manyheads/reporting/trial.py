"""Experiments on demand: choose values with sliders, press a button, see what comes out.

For work that is too long to do at every move of a slider, such as training. It needs a kernel: in the book, a line says
so; in Jupyter and Colab the button is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from manyheads.progress import output_is_stored
from manyheads.reporting.controls import WIDE, Axis, failure, in_words, panel, resolve, sliders
from manyheads.reporting.figures import svg


class Trial:
    """Sliders, a button and one figure; :func:`trial` makes one."""

    def __init__(self, run: Callable[..., tuple[Figure, str]], axes: dict[str, Axis], button: str):
        self._run, self.axes = run, axes
        self.sliders = sliders(axes)
        self.button = widgets.Button(description=button, button_style="primary")
        self.output = widgets.HTML(layout=WIDE)
        self.button.on_click(self._clicked)
        self.widget = panel(self.sliders, self.button, self.output)

    def _clicked(self, _button: Any) -> None:
        label, self.button.disabled = self.button.description, True
        self.button.description, self.output.value = "running …", ""
        values = {name: axis.values[self.sliders[name].index] for name, axis in self.axes.items()}
        try:
            self.output.value = svg(*self._run(**values))
        except (Exception, KeyboardInterrupt) as error:
            self.output.value = failure(error, in_words(self.axes, values))
        finally:  # whatever happens, the button can be pressed again
            self.button.description, self.button.disabled = label, False

    def __repr__(self) -> str:
        return f"{self.button.description}: " + ", ".join(axis.label for axis in self.axes.values())

    def _ipython_display_(self) -> None:
        from IPython.display import display, publish_display_data

        if not output_is_stored():
            display(self.widget)
            return
        choices = ", ".join(axis.label for axis in self.axes.values())
        button = f"\u201c{self.button.description}\u201d"
        text = f"With a kernel (Colab, Jupyter), sliders for {choices} and a button {button} stand here."
        publish_display_data({"text/plain": text, "text/html": f'<p class="mh-trial">{text}</p>'})


def trial(run: Callable[..., tuple[Figure, str]], button: str = "Run", **axes: Axis | Sequence[Any]) -> Trial:
    """Run an experiment with chosen values at the press of a button.

    Parameters
    ----------
    run
        Called with one keyword an axis; returns a figure and its text. It may take minutes; progress bars show,
        and an error is shown where the figure would be.
    button
        What the button says.
    **axes
        As for :func:`manyheads.reporting.explore.explore`, of any size.

    Raises
    ------
    ValueError
        Without an axis, with an empty axis, a repeated value or text, or a start that is not a value.
    """
    if not axes:
        raise ValueError("trial needs at least one axis, for example trial(run, n_heads=[1, 2, 4])")
    return Trial(run, resolve(axes), button)
