"""Read the files of a checkout: what is in them is what it should be, or the error names the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import yaml

from bookkit.errors import BookError

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
GLUE = "application/papermill.record/text/plain"
VERDICT = "application/vnd.manyheads.verdict+json"


def _holds(*required: str, **known: Any) -> dict[str, Any]:
    """A JSON schema of an object with these required keys."""
    return {"type": "object", "required": list(required), "properties": known}


_TEXT = {"type": "string"}
_STATES = {"type": "object", "additionalProperties": _holds(model_name=_TEXT)}
_DATA = _holds(**{VIEW: _holds("model_id", model_id=_TEXT), GLUE: _TEXT, VERDICT: _holds("id", id=_TEXT)})
_OUTPUT = _holds(data=_DATA, metadata=_holds(scrapbook=_holds("name", name=_TEXT)))
# what bookkit itself reads in a notebook, beyond what the format of notebooks promises
_SCHEMA = _holds(
    metadata=_holds(bookkit=_holds(), widgets=_holds(**{STATE: _holds("state", state=_STATES)})),
    cells={"type": "array", "items": _holds(outputs={"type": "array", "items": _OUTPUT})},
)


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn what a parser raises into a :class:`BookError` that names the file; parsers have many exceptions.

    An ``OSError`` passes: it names the file itself.
    """
    try:
        yield
    except (BookError, OSError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split("\n\n")[0].split()) or type(error).__name__
        where = getattr(error, "json_path", "")
        raise BookError(f"{path} is not {kind}: {reason[:300]}{f' (at {where})' if where else ''}") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping; a :class:`BookError` says which line is wrong."""
    with reading(path, "valid YAML"):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        json.dumps(content, default=str, ensure_ascii=False).encode()  # refuses circles, and text that no file can hold
    if not isinstance(content, dict):
        raise BookError(f"{path} must hold keys and values, found {type(content).__name__}")
    return content


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """Read a notebook in format 4; a :class:`BookError` names a file that is not one."""
    from jsonschema import Draft202012Validator

    if not path.is_file():
        raise BookError(f"{path} does not exist")
    with reading(path, "a readable notebook"):
        nb = nbformat.convert(nbformat.reader.reads(path.read_text(encoding="utf-8")), 4)
        ids = [cell.get("id") for cell in nb.cells]
        if nb.nbformat_minor >= 5 and (None in ids or len(set(ids)) < len(ids)):  # nbformat would make new ones up
            raise ValueError("cells have no id, or two have the same: save it once in JupyterLab")
        nbformat.validate(nb)
        Draft202012Validator(_SCHEMA).validate(nb)
        nbformat.writes(nb).encode()  # refuses text that no file can hold
    return nb
