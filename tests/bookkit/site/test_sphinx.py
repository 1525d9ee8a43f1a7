import shutil

import pytest

from bookkit import pipeline
from bookkit.errors import BookError, SiteError
from bookkit.notebooks import toc
from bookkit.project import Project
from bookkit.site import sphinx

pytestmark = pytest.mark.slow
PAGE = {"book/index.md": b"# Title\n", "_toc.yml": b"format: jb-book\nroot: book/index\n"}


def staged(project, **changes):
    """A site of one page, quick to build."""
    config = (project.root / "_config.yml").read_text().replace("bibtex_bibfiles: [book/references.bib]\n", "")
    config = config.replace("sphinxcontrib.bibtex, ", "")
    return {"_config.yml": config.encode(), **PAGE, **changes}


def test_built_once_and_then_left_alone(project):
    assert sphinx.publish(project, staged(project), {"colab/a.ipynb": b"{}"}) is True
    assert (project.html / "book/index.html").is_file()
    assert (project.html / "colab/a.ipynb").read_bytes() == b"{}"
    stamp = (project.html / "index.html").stat().st_mtime_ns
    assert sphinx.publish(project, staged(project), {"colab/a.ipynb": b"{}"}) is False
    assert (project.html / "index.html").stat().st_mtime_ns == stamp


def test_any_change_builds_again(project, monkeypatch):
    builds = []

    def fake(project, stage, output):
        builds.append(stage)
        (output / "html").mkdir()
        (output / "html/index.html").write_text("page")
        return output / "html"

    monkeypatch.setattr(sphinx, "_sphinx", fake)
    styled = {"book/_static/a.css": b"a {}"}
    assert sphinx.publish(project, staged(project), {}) is True
    assert sphinx.publish(project, staged(project, **styled), {}) is True
    (project.source / "manyheads/new.py").touch()  # the API page may show it
    assert sphinx.publish(project, staged(project, **styled), {}) is True
    (project.root / "requirements.txt").write_text("sphinx==0\n")
    assert sphinx.publish(project, staged(project), {}) is True
    assert sphinx.publish(project, staged(project), {"more": b""}) is True
    assert sphinx.publish(project, staged(project), {"more": b""}) is False
    assert len(builds) == 5
    assert not (project.build / "stage/book/_static/a.css").exists()  # nothing of earlier stages is left


def test_a_warning_stops_the_build_every_time(project):
    bad = staged(project, **{"book/index.md": b"# Title\n\nSee {ref}`nowhere`.\n"})
    for _ in range(2):
        with pytest.raises(SiteError) as failure:
            sphinx.publish(project, bad, {})
        lines = str(failure.value).splitlines()
        assert lines[0] == "the site was not built, Sphinx found 1 warning:"
        assert "book/index.md:3: WARNING: undefined label: 'nowhere'" in lines[1]
        assert str(project.root) not in str(failure.value)
        assert not project.html.exists()
    assert sorted(path.name for path in project.build.iterdir()) == ["matplotlib", "stage"]


def test_the_old_site_stays_until_a_new_one_is_complete(project, monkeypatch):
    project.html.mkdir(parents=True)
    (project.html / "index.html").write_text("old")
    (project.html / sphinx.FINGERPRINT).write_text("of older files")

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(sphinx, "_sphinx", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sphinx.publish(project, staged(project), {})
    assert (project.html / "index.html").read_text() == "old"
    assert sorted(path.name for path in project.build.iterdir()) == ["html", "stage"]


def test_sphinx_does_not_see_the_habits_of_a_person(project, tmp_path, monkeypatch):
    for name in ("manyheads", "yaml", "sphinx"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('of another checkout')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.setenv("LC_ALL", "tr_TR.ISO-8859-9")
    files = staged(project, **{"book/index.md": "# Şekil\n\n```{eval-rst}\n.. automodule:: manyheads\n```\n".encode()})
    files["_config.yml"] = files["_config.yml"].replace(b"extensions: [", b"extensions: [sphinx.ext.autodoc, ")
    sphinx.publish(project, files, {})
    page = (project.html / "book/index.html").read_text(encoding="utf-8")
    assert "Şekil" in page
    assert "A stand-in for the package that chapters import" in page


def test_a_link_at_the_place_of_the_stage_is_not_followed(project, tmp_path, monkeypatch):
    def fake(project, stage, output):
        (output / "html").mkdir()
        return output / "html"

    monkeypatch.setattr(sphinx, "_sphinx", fake)
    project.build.mkdir()
    (project.build / "stage").symlink_to(tmp_path / "kept")
    (tmp_path / "kept").mkdir()
    sphinx.publish(project, staged(project), {})
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p.build.touch(), r"_build is a file, .*remove it"),
        (lambda p: (p.build.mkdir(), p.html.touch()), r"_build/html is a file, .*remove it"),
        (lambda p: (p.build.mkdir(), p.html.symlink_to(p.book)), r"_build/html is a link, .*remove it"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_before_anything_is_executed(project, monkeypatch, make, message):
    monkeypatch.setattr(pipeline, "execute", lambda *args: pytest.fail("a chapter was executed"))
    make(project)
    before = sorted(project.root.rglob("*"))
    with pytest.raises(BookError, match=message) as failure:
        pipeline.build(project)
    assert len(str(failure.value).splitlines()) == 1
    assert sorted(project.root.rglob("*")) == before


def test_an_error_without_a_warning_shows_the_end_of_the_log(project):
    with pytest.raises(SiteError, match=r"(?s)Table of Contents file is malformed"):
        sphinx.publish(project, staged(project, **{"_toc.yml": b"format: jb-book\n"}), {})


def test_the_pages_of_the_small_book(built):
    page = (built.html / "book/01_first.html").read_text()
    assert "Last executed" in page
    assert 'href="../colab/01_first.ipynb"' in page
    assert (built.html / "colab/01_first.ipynb").is_file()
    assert "<noscript><p>static picture</p></noscript>" in page
    assert "application/vnd.jupyter.widget-state+json" in page
    assert "01_first.html" in (built.html / "book/index.html").read_text()
    assert "A1: exact" in (built.html / "book/scoreboard.html").read_text()


def test_a_second_build_executes_and_builds_nothing(built, ledger, capsys):
    def contents():
        return {path: path.stat().st_mtime_ns for path in built.html.rglob("*")}

    before = contents()
    pipeline.build(built, ledger=ledger)
    shown = capsys.readouterr().out
    assert contents() == before
    assert shown.count("cached") == len(toc.chapters(built))
    assert "Site: unchanged" in shown
    assert "make serve" in shown


def test_a_build_from_the_cache_gives_the_site_of_the_fresh_one(built, ledger, tmp_path, capsys):
    """Widgets come back from the cache in another order than they were made in."""
    again = Project(tmp_path / "again")
    shutil.copytree(built.root, again.root)
    fingerprint = (again.html / sphinx.FINGERPRINT).read_bytes()
    shutil.rmtree(again.html)
    for _ in range(2):
        pipeline.build(again, ledger=ledger)
        assert (again.html / sphinx.FINGERPRINT).read_bytes() == fingerprint
    assert [line.split(";")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("Site")] == [
        "Site: built",
        "Site: unchanged",
    ]
