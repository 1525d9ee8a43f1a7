"""The package as a whole: examples, dependencies, version, and which room imports which."""

import ast
import doctest
import importlib
import pkgutil
import re
import sys
import tomllib
from pathlib import Path

import pytest

import manyheads

ROOT = Path(manyheads.__file__).resolve().parents[2]
MODULES = sorted(info.name for info in pkgutil.walk_packages(manyheads.__path__, "manyheads."))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# what a room may import, from the ground up; names, files and progress are for everybody
ROOMS = {
    "models": set(),
    "theory": {"models"},
    "training": {"models"},
    "surgery": {"models", "theory"},
    "tasks": set(),
    "reporting": set(),
    "experiments": {"models", "theory", "training", "surgery", "tasks", "reporting"},
}


def imported(path):
    """The modules that a file imports at any place, with the names it takes from them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def source(module):
    base = ROOT / "src" / Path(*module.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_package_imports_what_it_declares_and_nothing_else():
    declared = {re.match(r"[\w-]+", line)[0] for line in PROJECT["dependencies"]}
    found = {name.split(".")[0] for module in MODULES for name in imported(source(module))}
    # IPython is there wherever a cell runs; glue and explorers do without it elsewhere
    assert found - set(sys.stdlib_module_names) - {"manyheads", "IPython"} == declared


@pytest.mark.parametrize("name", [name for name in MODULES if name.count(".") > 1])
def test_arrows_between_rooms_point_one_way(name):
    room = name.split(".")[1]
    rooms = {other.split(".")[1] for other in imported(source(name)) if other.startswith("manyheads.")}
    assert rooms & set(ROOMS) <= ROOMS[room] | {room}


def test_no_circle_between_files():
    known = set(MODULES)

    def resolved(name):  # the longest part of a dotted name that is a file
        while name and name not in known:
            name = name.rpartition(".")[0]
        return name

    arrows = {m: {resolved(n) for n in imported(source(m))} - {"", m} for m in MODULES}
    # a package's __init__ gathers what is in it, so it may be named by the files of other rooms only
    done, path = set(), []

    def walk(module):
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module in done:
            return
        path.append(module)
        for other in sorted(arrows[module]):
            walk(other)
        path.pop()
        done.add(module)

    for module in MODULES:
        walk(module)


def test_every_module_is_on_an_api_page_and_every_room_has_one():
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "book" / "api").glob("*.md")}
    assert set(pages) == set(ROOMS)
    text = "\n".join([*pages.values(), (ROOT / "book" / "api.md").read_text(encoding="utf-8")])
    assert sorted(re.findall(r"automodule:: (manyheads\.\S+)", text)) == MODULES


def test_there_is_one_version():
    assert PROJECT["dynamic"] == ["version"]
    assert f"version: {manyheads.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_no_file_is_over_400_lines(folder):
    long = {p: n for p in (ROOT / folder).rglob("*.py") if (n := len(p.read_text(encoding="utf-8").splitlines())) > 400}
    assert long == {}
