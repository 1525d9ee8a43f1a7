"""Whatever is in the files of a checkout: they are used, or one message names the file, and nothing is written."""

import json
import shutil

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bookkit import colab, facts, parameters, pipeline, stage, toc
from bookkit.cache import Cache
from bookkit.errors import BookError, ClaimError
from bookkit.normalise import normalise, text
from bookkit.project import Project

AWKWARD = [
    *(None, True, -1, 0, 1.5, 1e400, 10**30, "", "x", "a\0b", "\ud800", "9" * 400, "../../x", "/etc/hosts", "é"),
    *([], [None], [[]], ["x", 1], {}, {"x": {}}, {"file": 3}, {"file": "book/01_first", "sections": {}}),
]
# pieces that mean something in one of the formats
PIECES = [
    "{",
    "}",
    "[",
    "]",
    ":",
    "- ",
    "&a ",
    "*a",
    "!!python/object:x",
    '"',
    "\\",
    "@",
    "%",
    "\t",
    "\0",
    "#",
    "1e999",
]
PIECES += ["```{", "---\n", "$$", "(x)=\n", ":::{", "2026-13-45", "<!--", "{glue:text}`", "\n", "=", ",", "~", "\u2028"]


def nodes(value, path=()):
    """Every place in nested data, as the keys that lead to it."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from nodes(inner, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def cut(content, draw):
    """A text with a piece of itself lost, doubled or replaced."""
    start = draw(st.integers(0, len(content)))
    end = draw(st.integers(start, min(len(content), start + 40)))
    middle = draw(st.sampled_from([*PIECES, "", content[start:end] * 2]))
    return content[:start] + middle + content[end:]


@st.composite
def damaged(draw, content, data=None):
    """Bytes like those of a file: noise, or its text cut somewhere, or its data with another value at some place."""
    kind = draw(st.sampled_from(["noise", "cut", "cut", *["value"] * 4 * (data is not None)]))
    if kind == "noise":
        return draw(st.binary(max_size=40) | st.text(max_size=40).map(lambda noise: noise.encode("utf-8", "replace")))
    if kind == "cut":
        return cut(content, draw).encode()
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(list(nodes(data))))
        inner = data
        for key in path:
            inner = inner[key]
        new = cut(inner, draw) if isinstance(inner, str) and draw(st.booleans()) else draw(st.sampled_from(AWKWARD))
        data = replaced(data, path, new)
    return json.dumps(data).encode()


@pytest.fixture(scope="module")
def checkout(built, runs, tmp_path_factory):
    """The small book with executed notebooks and a cached run, to be damaged file by file."""
    project = Project(tmp_path_factory.mktemp("inputs") / "checkout")
    shutil.copytree(built.root, project.root, ignore=shutil.ignore_patterns("html", "stage", "vendor", "matplotlib"))
    for run in runs:
        (project.book / run.chapter.path.name).write_text(text(normalise(run.nb, run.chapter.stem)), encoding="utf-8")
    (project.vendor / "mathjax").mkdir(parents=True)
    (project.vendor / "mathjax/tex-mml-chtml.js").touch()
    return project


def pages(project):
    """What Sphinx and Colab would get."""
    chapters = toc.chapters(project)
    notebooks = {chapter: normalise(chapter.read(), chapter.stem, keep_widgets=True) for chapter in chapters}
    stage.files(project, notebooks, {}, "# Scoreboard\n", project.vendor)
    colab.copies(project, {chapter: normalise(nb, chapter.stem) for chapter, nb in notebooks.items()})


def stored(project):
    """What would be executed, and what need not be."""
    for chapter in toc.chapters(project):
        plan = parameters.resolve(chapter.read(), str(chapter), {})
        Cache(project).key(chapter, plan)
        for path in (project.build / "executed" / chapter.stem).glob("*.json"):
            run = Cache(project).load(chapter, path.stem)
            if run:
                facts.chapter_line(chapter, run.facts, project.colab_base())
                str(run)


def state(project):
    return {path: path.stat().st_mtime_ns for path in project.root.rglob("*")}


def check(project, ledger, path, content):
    """Put the content into the file, use it, and put things back as they were."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        unchanged = state(project)
        for use in (lambda p: pipeline.check(p, ledger=ledger), pages, stored):
            try:
                use(project)
            except ClaimError:
                pass
            except BookError as error:
                assert path.stem in str(error) or "judged" in str(error), error
                str(error).encode()
        assert state(project).keys() == unchanged.keys()
        assert {p: t for p, t in state(project).items() if p.suffix != ".json"} == {
            p: t for p, t in unchanged.items() if p.suffix != ".json"
        }
    finally:
        path.write_bytes(before)


def data_of(path):
    if path.suffix == ".yml":
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    return json.loads(path.read_text(encoding="utf-8")) if path.suffix in (".ipynb", ".json") else None


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("_toc.yml", "_config.yml", "pyproject.toml", "book/references.bib", "book/index.md"),
        *("book/01_first.ipynb", "_build/executed/01_first/*.json"),
    ],
)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_content_is_used_or_refused_by_name(checkout, ledger, name, data):
    [path] = checkout.root.glob(name)
    content = data.draw(damaged(path.read_text(encoding="utf-8"), data_of(path)))
    check(checkout, ledger, path, content)
