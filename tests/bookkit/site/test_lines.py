import re
from dataclasses import replace

import pytest

from bookkit.notebooks import facts, toc
from bookkit.notebooks.facts import Facts
from bookkit.site import lines

FACTS = Facts("2026-01-02", 12.3, "2 CPU cores", "3.11.1", "2.13.0", "quick")


def test_facts_of_a_run_on_this_machine():
    now = Facts.now(1.26, "gpu")
    assert (now.seconds, now.profile) == (1.3, "gpu")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", now.executed)
    assert re.search(r"\d+ CPU cores?$", now.device)
    assert Facts.from_json(now.to_json()) == now


def test_a_gpu_is_named(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    assert facts.device().startswith("Tesla T4 and ")


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0 s"), (12.3, "12 s"), (600, "10 min")])
def test_durations_in_words(seconds, words):
    assert replace(FACTS, seconds=seconds).took == words


def test_the_line_of_a_chapter(project):
    chapter = toc.chapters(project)[0]
    line = lines.chapter_line(chapter, FACTS, None)
    assert line == (
        "Last executed 2026-01-02 in 12 s on 2 CPU cores (quick profile, torch 2.13.0, Python 3.11.1). "
        '<a href="../colab/01_first.ipynb" download>Download the Colab copy</a>'
    )


def test_the_line_links_to_colab_when_there_is_an_address(project):
    line = lines.chapter_line(toc.chapters(project)[0], None, "https://colab.example/")
    assert line.startswith('<a href="https://colab.example/01_first.ipynb">Open in Colab</a>')


def test_the_chapter_table(project):
    first, second = toc.chapters(project)
    table = lines.chapter_table([(first, FACTS, "a laptop"), (second, None, "a GPU")])
    assert table.splitlines()[2:] == [
        "| [1. First things](01_first.ipynb) | a laptop | 12 s | 2 CPU cores | 2026-01-02 |",
        "| [2. Second things](02_second.ipynb) | a GPU | — | — | — |",
    ]


def test_what_a_chapter_needs():
    assert lines.needs({}) == "a laptop"
    assert lines.needs({"bookkit": {"needs": "a GPU"}}) == "a GPU"
