"""The parameters that a chapter may be run with.

A chapter has one cell tagged ``parameters``, such as::

    profile = os.environ.get("MANYHEADS_PROFILE", "quick")
    seed = 0

Papermill itself accepts any name and then runs with values that nothing reads; here every name and value is checked
before anything is executed or written.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nbformat import NotebookNode

from bookkit.errors import ParameterError
from manyheads.names import unknown

PROFILES = ("quick", "gpu", "full")
DEFAULT_PROFILE = "quick"
INJECTED = "injected-parameters"  # papermill's tag of the cell that it puts after the one tagged "parameters"


def _profile(value: object) -> str:
    if value not in PROFILES:
        raise ValueError(unknown("profile", value, PROFILES))
    return str(value)


def _seed(value: object) -> int:
    try:
        seed = int(str(value))
    except ValueError:
        raise ValueError(f"seed={value!r} is not an integer; for example 0") from None
    if seed < 0:
        raise ValueError(f"seed={seed} is negative; the nearest valid value is 0")
    return seed


@dataclass(frozen=True)
class Parameter:
    """A parameter: what it means, and how text from a command line becomes a valid value."""

    meaning: str
    parse: Callable[[object], str | int]


SCHEMA: Mapping[str, Parameter] = {
    "profile": Parameter("how much to compute: " + ", ".join(PROFILES), _profile),
    "seed": Parameter("seed of every random draw, an integer >= 0", _seed),
}


def parse(given: Mapping[str, object] | Sequence[tuple[str, str]]) -> dict[str, str | int]:
    """Return the given values, converted and checked against :data:`SCHEMA`.

    Raises
    ------
    ParameterError
        For a name that is not in the schema or given twice with different values, or a value it cannot take.
    """
    values: dict[str, str | int] = {}
    for name, text in given.items() if isinstance(given, Mapping) else given:
        if name not in SCHEMA:
            raise ParameterError(unknown("parameter", name, SCHEMA))
        try:
            value = SCHEMA[name].parse(text)
        except ValueError as error:
            raise ParameterError(f"parameter {name}: {error}") from None
        if values.setdefault(name, value) != value:
            raise ParameterError(f"parameter {name} is given twice: {values[name]!r} and {value!r}")
    return values


def assigned(nb: NotebookNode, name: str) -> set[str]:
    """Return the parameters that a chapter declares.

    Raises
    ------
    ParameterError
        Unless the chapter has exactly one cell tagged ``parameters``, whose every assignment is in the schema.
    """
    cells = [cell for cell in nb.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(cells) != 1 or cells[0].cell_type != "code":
        raise ParameterError(f"{name} needs exactly one code cell tagged 'parameters', it has {len(cells)}")
    try:
        tree = ast.parse(cells[0].source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # the last two: nested too deeply
        raise ParameterError(f"{name}: the cell tagged 'parameters' is not Python: {error}") from None
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for other in sorted(names - set(SCHEMA)):
        raise ParameterError(f"{name}: the cell tagged 'parameters' assigns an {unknown('parameter', other, SCHEMA)}")
    return names


def resolve(nb: NotebookNode, name: str, given: Mapping[str, str | int]) -> dict[str, str | int]:
    """Return what a chapter runs with: the given values, and the default profile where the chapter has one.

    Raises
    ------
    ParameterError
        When a given parameter is one that the chapter does not assign; it would be silently without effect.
    """
    known = assigned(nb, name)
    for parameter in given:
        if parameter not in known:
            raise ParameterError(f"{name} does not assign it: {unknown('parameter', parameter, sorted(known))}")
    return ({"profile": DEFAULT_PROFILE} if "profile" in known else {}) | dict(given)
