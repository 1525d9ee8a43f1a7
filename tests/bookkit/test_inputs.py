"""Whatever is in the files of a checkout: they are used, or one message names the file, and nothing is written."""

import json
import shutil

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bookkit import pipeline
from bookkit.colab import citations, copies
from bookkit.errors import BookError
from bookkit.notebooks import parameters, toc
from bookkit.notebooks.cache import Cache
from bookkit.notebooks.normalise import normalise
from bookkit.project import Project
from bookkit.site import lines, stage

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
def checkout(built, runs, ledger, tmp_path_factory):
    """The small book with executed notebooks and a cached run, to be damaged file by file."""
    project = Project(tmp_path_factory.mktemp("inputs") / "checkout")
    shutil.copytree(built.root, project.root, ignore=shutil.ignore_patterns("html", "stage", "vendor", "matplotlib"))
    pipeline.refresh(project, ledger=ledger)
    (project.vendor / "mathjax").mkdir(parents=True)
    (project.vendor / "mathjax/tex-mml-chtml.js").touch()
    return project


def check(project, ledger):
    """What is committed."""
    pipeline.check(project, ledger=ledger)


def pages(project, ledger):
    """What Sphinx and Colab get."""
    notebooks = {chapter: chapter.read() for chapter in toc.chapters(project)}
    with_widgets = {c: normalise(nb, c.stem, keep_widgets=True) for c, nb in notebooks.items()}
    stage.files(project, with_widgets, {}, "# Scoreboard\n", project.vendor)
    copies.make(project, {chapter: normalise(nb, chapter.stem) for chapter, nb in notebooks.items()})


def stored(project, ledger):
    """What is executed, and what need not be."""
    cache = Cache(project)
    for chapter in toc.chapters(project):
        cache.key(chapter, parameters.resolve(chapter.read(), str(chapter), {}))
        for path in (cache.folder / chapter.stem).glob("*.json"):
            run = cache.load(chapter, path.stem)
            if run:
                str(run)
                lines.chapter_line(chapter, run.facts, None)


def cited(project, ledger):
    """What the copies for Colab cite."""
    citations.read(project.bibliographies())


def needed(project, ledger):
    """What the copies for Colab install."""
    project.requirements()


def contents(project):
    return {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file()}


def data_of(path):
    if path.suffix == ".yml":
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    return json.loads(path.read_text(encoding="utf-8")) if path.suffix in (".ipynb", ".json") else None


def refusal(use, project, ledger):
    """What a person is told, or nothing."""
    try:
        use(project, ledger)
    except BookError as error:
        return str(error)


USES = {
    "_toc.yml": (check, pages, stored),
    "_config.yml": (pages,),
    "pyproject.toml": (needed,),
    "book/references.bib": (cited,),
    "book/01_first.ipynb": (check, pages, stored),
    "_build/executed/01_first/*.json": (stored,),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", USES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_content_is_used_or_refused_by_name(checkout, ledger, name, data):
    [path] = checkout.root.glob(name)
    before = path.read_bytes()
    content = data.draw(damaged(before.decode(), data_of(path)))
    path.write_bytes(content)
    try:
        unused = contents(checkout)
        refusals = [refusal(use, checkout, ledger) for use in USES[name]]
        names = (path.stem, "judged", "scoreboard")  # the last two: of what the notebooks hold together
        assert all(any(name in words for name in names) for words in filter(None, refusals))
        assert contents(checkout) == unused
    finally:
        path.write_bytes(before)
