import json

import pytest

from bookkit.errors import BookError
from bookkit.reading import GLUE, STATE, VERDICT, VIEW, read_notebook, read_yaml, reading
from tests.bookkit.small_book import chapter_one

CELL = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# T"}


def notebook(*cells, **metadata):
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def shows(data, **metadata):
    output = {"output_type": "display_data", "data": data, "metadata": metadata}
    return notebook({**CELL, "cell_type": "code", "execution_count": 1, "outputs": [output]})


def test_a_notebook_comes_as_it_is(tmp_path):
    nb = chapter_one()
    (tmp_path / "a.ipynb").write_text(json.dumps(nb))
    assert read_notebook(tmp_path / "a.ipynb") == nb


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "JSON"),
        ("[" * 100_000, "recursion"),
        ("[]", ""),
        (notebook(3), ""),
        (notebook({"cell_type": "markdown", "id": "a"}), ""),
        (notebook({**CELL, "source": "\ud800"}), "surrogates"),
        (notebook({key: CELL[key] for key in CELL if key != "id"}), "cells have no id"),
        (notebook(CELL, CELL), "two have the same"),
        (notebook(bookkit="a GPU"), "(at $.metadata.bookkit)"),
        (notebook(widgets={STATE: {"state": {"1": {"model_name": 3}}}}), "(at $.metadata.widgets"),
        (shows({VIEW: "x"}), VIEW),
        (shows({VIEW: {"model_id": 3}}), "3 is not of type 'string'"),
        (shows({GLUE: 3}), "3 is not"),
        (shows({}, scrapbook={}), "'name' is a required property"),
        (shows({VERDICT: {}}), "'id' is a required property"),
    ],
)
def test_a_notebook_that_cannot_be_used_is_named(tmp_path, content, reason):
    path = tmp_path / "01_first.ipynb"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(BookError) as failure:
        read_notebook(path)
    message = str(failure.value)
    assert message.startswith(f"{path} is not a readable notebook: ")
    assert reason in message
    assert len(message.splitlines()) == 1
    assert len(message) < 600


def test_a_notebook_that_is_not_there(tmp_path):
    with pytest.raises(BookError, match=r"no\.ipynb does not exist"):
        read_notebook(tmp_path / "no.ipynb")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a: [", "line 1"),
        (b"a: 2026-13-45", "month"),
        (b"a: &a [*a]", "Circular"),
        (b'a: "\\ud800"', "surrogates"),
        (b"\xff", "decode"),
        (b"[" * 100_000, "recursion"),
        (b"- a", "must hold keys and values, found list"),
        (b"", "must hold keys and values, found NoneType"),
    ],
)
def test_yaml_that_cannot_be_used_is_named(tmp_path, content, reason):
    path = tmp_path / "_toc.yml"
    path.write_bytes(content)
    with pytest.raises(BookError) as failure:
        read_yaml(path)
    assert str(failure.value).startswith(str(path))
    assert reason in str(failure.value)
    assert len(str(failure.value).splitlines()) == 1


def test_what_names_the_file_by_itself_passes(tmp_path):
    with pytest.raises(FileNotFoundError), reading(tmp_path, "readable"):
        (tmp_path / "no").read_text()
    with pytest.raises(BookError, match="said already"), reading(tmp_path, "readable"):
        raise BookError("said already")
