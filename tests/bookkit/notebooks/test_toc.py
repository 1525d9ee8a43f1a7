import pytest

from bookkit.errors import BookError
from bookkit.notebooks import toc
from tests.bookkit.small_book import chapter_one, chapter_two, markdown, notebook, write_notebook


def test_chapters_in_the_order_of_the_toc(project):
    first, second = toc.chapters(project)
    assert (first.number, first.stem, first.title) == (1, "01_first", "First things")
    assert (second.number, second.path) == (2, project.book / "02_second.ipynb")


def test_chapters_are_found_in_sections_at_any_depth(project):
    (project.root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n- file: book/02_second\n  sections:\n  - file: book/01_first\n"
    )
    assert [chapter.number for chapter in toc.chapters(project)] == [2, 1]


def test_entries_in_order_with_sections_after_their_page(project):
    (project.root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nparts:\n- caption: A\n  chapters:\n  - file: book/a\n    sections:\n"
        "    - file: book/b\n      sections:\n      - file: book/c\n  - url: https://example.org\n  - file: book/d\n"
        "- caption: B\n  chapters:\n  - file: book/e.md\n"
    )
    assert toc.entries(project) == ["book/index", "book/a", "book/b", "book/c", "book/d", "book/e.md"]


def test_a_chapter_without_its_notebook(project):
    (project.book / "02_second.ipynb").unlink()
    with pytest.raises(BookError, match=r"names book/02_second, but book/02_second\.ipynb does not exist"):
        toc.chapters(project)


def test_two_chapters_with_one_number(project):
    write_notebook(project.book / "01_again.ipynb", chapter_two())
    toc_file = project.root / "_toc.yml"
    toc_file.write_text(toc_file.read_text().replace("02_second", "01_again"))
    with pytest.raises(BookError, match="two chapters 1: 01_first and 01_again"):
        toc.chapters(project)


def test_a_chapter_without_a_title(project):
    write_notebook(project.book / "02_second.ipynb", notebook(markdown("## Only a section")))
    with pytest.raises(BookError, match=r"02_second\.ipynb has no title"):
        toc.chapters(project)


def test_a_file_that_is_no_notebook(project):
    (project.book / "01_first.ipynb").write_text("{ not a notebook")
    with pytest.raises(BookError, match=r"01_first\.ipynb is not a readable notebook"):
        toc.chapters(project)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a: [", "valid YAML"),
        ("- just\n- a list\n", "keys and values"),
        ("format: jb-book\n", "'root' key not found"),
        ("format: jb-bok\nroot: book/index\n", "'jb-bok'"),
        ("format: jb-book\nroot: book/index\nchapter:\n- file: book/01_first\n", "Unknown keys found: {'chapter'}"),
        ("format: jb-book\nroot: book/index\nchapters:\n- book/01_first\n", "not a mapping.*'/chapters/0'"),
        ("format: jb-book\nroot: a\nchapters:\n- file: b\n- file: b\n", "multiple times: 'b'"),
        ("format: jb-book\nroot: a\nchapters:\n- file: ../b\n", "must be the name of a file in"),
    ],
)
def test_a_toc_that_cannot_be_read(project, content, reason):
    (project.root / "_toc.yml").write_text(content)
    with pytest.raises(BookError, match=rf"_toc\.yml.*{reason}"):
        toc.chapters(project)


def test_select_by_number_and_by_stem(project):
    chapters = toc.chapters(project)
    assert toc.select(chapters, []) == chapters
    assert toc.select(chapters, ["02_second", "1"]) == chapters
    assert toc.select(chapters, ["2"]) == chapters[1:]


def test_select_an_unknown_chapter_names_the_nearest(project):
    with pytest.raises(BookError, match=r"unknown chapter '02_secnd'.*did you mean '02_second'"):
        toc.select(toc.chapters(project), ["02_secnd"])


def test_reading_leaves_the_notebook_alone(project):
    write_notebook(project.book / "01_first.ipynb", chapter_one())
    before = (project.book / "01_first.ipynb").read_bytes()
    toc.chapters(project)
    assert (project.book / "01_first.ipynb").read_bytes() == before
