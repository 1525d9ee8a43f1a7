"""Make an executed notebook reproducible byte for byte, and say what keeps it from being committed.

What papermill, Jupyter and widgets add (timings, versions, random ids) goes; sources and outputs stay. Committed
notebooks hold no widgets: every explorer also has a static figure in the same output, and that is what they keep.
The site's copies keep the widgets that a reader sees, under ids that are the same in every run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from copy import deepcopy

import nbformat
from nbformat import NotebookNode

from bookkit.errors import NotebookError
from bookkit.notebooks.execute import TRACES
from bookkit.notebooks.parameters import INJECTED
from bookkit.reading import STATE, VIEW

LINKS = ("LinkModel", "DirectionalLinkModel")
MAX_BYTES = 1_500_000
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_REFERENCE = re.compile(r"IPY_MODEL_([0-9a-f]{32})")
_ADDRESS = re.compile(r"<[^<>\n]* at 0x[0-9a-f]{6,}>")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def normalise(nb: NotebookNode, name: str, *, keep_widgets: bool = False) -> NotebookNode:
    """Return a reproducible copy of an executed notebook.

    Parameters
    ----------
    nb
        The notebook as papermill returned it, or as it was committed: normalising twice changes nothing more.
    name
        The stem of the chapter; it enters the widget ids, so that they differ between pages.
    keep_widgets
        Keep the widgets that are shown, for the site. A committed notebook must not have them.

    Raises
    ------
    NotebookError
        When the result has :func:`problems`. For the site (``keep_widgets=True``) the limits that only concern
        committed files are not applied.
    """
    nb = deepcopy(nb)
    nb.cells = [cell for cell in nb.cells if INJECTED not in cell.metadata.get("tags", [])]
    count = 0
    for cell in nb.cells:
        for trace in TRACES:
            cell.metadata.pop(trace, None)
        if not cell.metadata.get("tags", True):
            del cell.metadata["tags"]
        if cell.cell_type == "code":
            if cell.execution_count is not None:
                count += 1
                cell.execution_count = count
            cell.outputs = list(_outputs(cell, keep_widgets))
    nb.metadata.pop("papermill", None)
    nb.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nb.metadata.language_info = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"}
    if keep_widgets:
        nb = _shown_widgets(nb, name)
    else:
        nb.metadata.pop("widgets", None)
    found = broken(nb) if keep_widgets else problems(nb)
    if found:
        raise NotebookError(name, found)
    return nb


def text(nb: NotebookNode) -> str:
    """Return the notebook as the text that is committed: one line end, no escapes, ends with a newline."""
    return nbformat.writes(nb).rstrip("\n") + "\n"


def broken(nb: NotebookNode) -> list[str]:
    """Return what makes an executed notebook unfit for readers: cells that failed, or never ran, or not in order."""
    found, count = [], 0
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        count += 1
        if cell.execution_count is None:
            found.append(f"cell {number} was not executed")
        elif cell.execution_count != count:
            found.append(f"cell {number} ran as number {cell.execution_count} instead of {count}: run all, in order")
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"cell {number} failed: {output.ename}: {output.evalue}")
    return found


def problems(nb: NotebookNode) -> list[str]:
    """Return every reason why a notebook must not be committed; an empty list when it may be."""
    found = broken(nb)
    for number, cell in enumerate(nb.cells, start=1):
        if INJECTED in cell.metadata.get("tags", []):
            found.append(f"cell {number} was injected by papermill")
        if {"papermill", "execution"} & set(cell.metadata):
            found.append(f"cell {number} stores timings of a run")
        for output in cell.get("outputs", []):
            found += [f"cell {number} {reason}" for reason in _unfit(output)]
    if {"papermill", "widgets"} & set(nb.metadata):
        found.append("the notebook's metadata store a run or the state of widgets")
    if (nb.nbformat, nb.nbformat_minor) < (4, 5):
        found.append("the notebook is in an old format, whose cells have no ids: save it once in JupyterLab")
    size = len(text(nb).encode())
    if size > MAX_BYTES:
        found.append(f"the notebook has {size / 1e6:.2f} MB; the limit is {MAX_BYTES / 1e6:.1f} MB")
    return found


def _unfit(output: NotebookNode) -> Iterator[str]:
    """What an output holds that another run would not repeat."""
    if output.output_type == "stream" and output.name == "stderr":
        said = _ANSI.sub("", output.text).strip()[:100]
        yield f"writes to stderr, so a page would show it: {said!r}; mend what warns, or print to stdout"
    data = output.get("data", {})
    if VIEW in data:
        yield "stores a widget"
    for shown in (output.get("text", ""), data.get("text/plain", ""), data.get("text/markdown", "")):
        address = _ADDRESS.search(shown)
        if address:
            yield f"shows a memory address, which changes in every run: {address[0][:80]}"


def _outputs(cell: NotebookNode, keep_widgets: bool) -> Iterator[NotebookNode]:
    """The outputs, with what was printed in one piece: where a stream is cut depends on the clock."""
    previous = None
    for output in cell.outputs:
        if output.output_type == "execute_result":
            output.execution_count = cell.execution_count
        if not keep_widgets and VIEW in output.get("data", {}):
            del output.data[VIEW]
            # ipywidgets' own fallback text repeats the widget's settings, which mean nothing without the widget
            if set(output.data) <= {"text/plain"}:
                continue
        if previous is not None and _same_stream(previous, output):
            previous.text += output.text
            continue
        if previous is not None:
            yield previous
        previous = output
    if previous is not None:
        yield previous


def _same_stream(one: NotebookNode, other: NotebookNode) -> bool:
    return one.output_type == other.output_type == "stream" and one.name == other.name


def _shown_widgets(nb: NotebookNode, name: str) -> NotebookNode:
    """Keep the widgets that a reader meets, under ids made from the chapter's name and the order of meeting them.

    First come the displayed widgets, depth first through those they refer to; then the links whose two ends are among
    them, which move one with the other and which nothing refers to. No view needs any other widget.
    """
    saved = nb.metadata.get("widgets", {}).get(STATE)
    if saved is None:
        return nb
    states = saved["state"]
    new: dict[str, str] = {}

    def references(model: str) -> list[str]:
        return [other for other in _REFERENCE.findall(json.dumps(states[model], sort_keys=True)) if other in states]

    def meet(model: str) -> None:
        if model in states and model not in new:
            new[model] = hashlib.sha256(f"{name}:{len(new)}".encode()).hexdigest()[:32]
            for other in references(model):
                meet(other)

    def content(link: str) -> str:
        return _ID.sub(lambda match: new.get(match[0], match[0]), json.dumps(states[link], sort_keys=True))

    for cell in nb.cells:
        for output in cell.get("outputs", []):
            if VIEW in output.get("data", {}):
                meet(output.data[VIEW].model_id)
    links = [model for model in states if states[model].get("model_name") in LINKS and model not in new]
    for link in sorted((link for link in links if set(references(link)) <= set(new)), key=content):
        meet(link)
    saved["state"] = {model: states[model] for model in new}
    renamed = _ID.sub(lambda match: new.get(match[0], match[0]), nbformat.writes(nb))
    return nbformat.reads(renamed, as_version=4)
