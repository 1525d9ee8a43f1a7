"""Which room of bookkit imports which: colab and site know notebooks, not each other; nothing goes in circles."""

import ast
from pathlib import Path

import pytest

import bookkit

ROOT = Path(bookkit.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MAY_KNOW = {"notebooks": {"notebooks"}, "colab": {"colab", "notebooks"}, "site": {"site", "notebooks"}}


def name(path):
    return ".".join(["bookkit", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("bookkit"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", [path for path in FILES if path.parent != ROOT], ids=name)
def test_a_room_knows_only_the_rooms_below_it(path):
    rooms = {other.split(".")[1] for other in imported(path)} & {*MAY_KNOW, "pipeline", "cli"}
    assert rooms <= MAY_KNOW[path.parent.name]


def test_no_circle_between_files():
    known = {name(path) for path in FILES}
    arrows = {}
    for path in FILES:
        targets = {other if other in known else other.rpartition(".")[0] for other in imported(path)}
        arrows[name(path)] = (targets & known) - {name(path), "bookkit"}
    while leaves := [file for file, targets in arrows.items() if not targets]:
        arrows = {file: targets - set(leaves) for file, targets in arrows.items() if file not in leaves}
    assert arrows == {}
