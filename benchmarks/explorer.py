"""A state of an explorer, drawn as the book draws it and as matplotlib does by itself.

Run ``python benchmarks/explorer.py``; it takes about half a minute. A page of the book holds up to sixty such states,
drawn beforehand. Compared are what makes them fast: tick labels of logarithmic axes in plain characters instead of
mathtext, and one drawing instead of two. Contestants take turns as in ``benchmarks/attention.py``; shown are medians of
ratios with their quartiles.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from unittest import mock

import matplotlib
from attention import interleaved, ratio, table
from matplotlib.figure import Figure
from tqdm import tqdm

from manyheads.reporting import figures
from manyheads.reporting.figures import picture
from manyheads.reporting.statistics import Mean


def weights() -> Figure:
    """Attention weights by rank: bars on one logarithmic axis."""
    figure, ax = figures.canvas(5.8, 2.9)
    ax.bar(range(1, 17), [10 ** (-0.6 * rank) for rank in range(16)], color=figures.BLUE)
    ax.set(yscale="log", ylim=(1e-12, 2), xlabel="rank of the token", ylabel="attention weight", title="a title")
    ax.minorticks_off()
    return figure


def errors() -> Figure:
    """Errors against parameters: bars on two logarithmic axes, one of them short of two decades."""
    figure, ax = figures.canvas(5.8, 3.2)
    for index in range(4):
        mean = Mean(0.1 / 8**index, 0.08 / 8**index, 0.125 / 8**index, 6)
        figures.error_bars(ax, [4500 * 2.4**index], [mean], label=f"network {index}", index=index)
    ax.set(xscale="log", yscale="log", ylim=(1e-5, 1), xlabel="parameters", ylabel="NMSE")
    ax.legend(loc="lower right")
    return figure


def curves() -> Figure:
    """Curves with bands on linear axes, where there is no mathtext to save."""
    figure, ax = figures.canvas(5.8, 3.2)
    for index in range(4):
        means = [Mean(1 / (x + index), 0.9 / (x + index), 1.1 / (x + index), 6) for x in range(1, 9)]
        figures.band(ax, range(1, 9), means, label=f"k = {index}", index=index)
    ax.set(ylim=(0, None), xlabel="numbers read", ylabel="error")
    ax.legend()
    return figure


class Twice:
    """Stands in for the canvas that draws once: matplotlib's own entry draws twice."""

    def __init__(self, figure: Figure):
        self.print_svg = partial(figure.savefig, format="svg", facecolor="none")


def state(build: Callable[[], Figure], mathtext: bool, twice: bool) -> Callable[[], object]:
    """One state from nothing to its HTML, with or without what the book changes."""

    def run():
        figure = build()
        with (
            mock.patch.object(picture, "plain_log_ticks", (lambda _: None) if mathtext else picture.plain_log_ticks),
            mock.patch.object(picture, "FigureCanvasSVG", Twice if twice else picture.FigureCanvasSVG),
        ):
            return figures.svg(figure, "a state")

    return run


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="time per row (default 8)")
    arguments = parser.parse_args()
    rows = []
    states = {"bars, one logarithmic axis": weights, "bars, two": errors, "curves, none": curves}
    for name, build in tqdm(states.items(), unit="row", disable=None, leave=False):
        runs = {
            "book": state(build, mathtext=False, twice=False),
            "drawn twice": state(build, mathtext=False, twice=True),
            "mathtext": state(build, mathtext=True, twice=False),
            "both": state(build, mathtext=True, twice=True),
        }
        times = interleaved(runs, arguments.seconds, lambda: None)
        row = [name, f"{1e3 * statistics.median(times['book']):.0f}"]
        rows.append(row + [ratio(times[other], times["book"]) for other in list(runs)[1:]])
    header = ["state", "book, ms", "drawn twice / book", "mathtext / book", "both / book"]
    print(f"matplotlib {matplotlib.__version__}; median ratio [quartiles], above 1: the book is faster")
    print(table("One state of an explorer, computed, drawn and written as SVG", header, rows))


if __name__ == "__main__":
    main()
