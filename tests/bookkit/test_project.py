import pytest

from bookkit.errors import BookError
from bookkit.project import Project, digest, files_under


def test_the_root_is_found_from_a_folder_inside(project):
    assert Project.find(project.book).root == project.root
    assert Project.find(project.root) == project


def test_no_book_here(tmp_path):
    with pytest.raises(BookError, match=r"no book in .* or above it.*_config\.yml and _toc\.yml.*--root"):
        Project.find(tmp_path)


@pytest.mark.parametrize("missing", ["_config.yml", "_toc.yml"])
def test_both_files_make_a_book(project, missing):
    (project.root / missing).unlink()
    with pytest.raises(BookError, match="no book"):
        Project.find(project.root)


def test_requirements_are_names_without_bounds(project):
    assert project.requirements() == ["torch", "ipywidgets"]


@pytest.mark.parametrize(
    ("repository", "base"),
    [
        ("", None),
        ("repository: {url: 'https://example.org/a/b'}", None),
        (
            "repository: {url: 'https://github.com/org/book.git'}",
            "https://colab.research.google.com/github/org/book/blob/gh-pages/colab/",
        ),
        (
            "repository: {url: 'https://github.com/org/book/', branch: site}",
            "https://colab.research.google.com/github/org/book/blob/site/colab/",
        ),
    ],
)
def test_address_of_the_colab_copies(project, repository, base):
    config = project.root / "_config.yml"
    config.write_text(config.read_text() + repository + "\n")
    assert project.colab_base() == base


def test_files_under_leaves_out_what_can_be_made_again(tmp_path):
    for name in ("a.py", "sub/b.py", "__pycache__/a.pyc", ".hidden/c.py", "x.egg-info/d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.name for path in files_under(tmp_path)] == ["a.py", "b.py"]
    assert files_under(tmp_path / "absent") == []


def test_digest_keeps_names_and_contents_apart():
    parts = [[("a", b"b"), ("c", b"")], [("a", b""), ("bc", b"")], [("ab", b""), ("c", b"")], [("c", b""), ("a", b"b")]]
    assert len({digest(part) for part in parts}) == len(parts)
