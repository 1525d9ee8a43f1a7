import pytest

from bookkit.colab import citations
from bookkit.errors import BookError

BIB = r"""
@inproceedings{two, author = {G{\"o}del, Kurt and van der Waerden, B. L.}, title = {On {X} and $n^2$}, year = {1931},
  booktitle = {Proc.}, url = {https://example.org/a_b?x=1%20}}
@article{three, author = {A, B and C, D and E, F}, title = {T}, year = {2024}, eprint = {2401.00001}}
@misc{none, title = {Untold}}
"""


@pytest.fixture
def works(tmp_path):
    (tmp_path / "r.bib").write_text(BIB)
    return citations.read([tmp_path / "r.bib"])


def test_short_names(works):
    assert (works["two"].authors, works["two"].year) == ("Gödel and van der Waerden", "1931")
    assert works["three"].authors == "A et al."
    assert (works["none"].authors, works["none"].year) == ("Untold", "n.d.")


def test_full_references(works):
    assert works["two"].reference == (
        "Kurt Gödel, B. L. van der Waerden. *On X and $n^2$*. Proc.. 1931. https://example.org/a_b?x=1%20"
    )
    assert works["three"].reference.endswith("https://arxiv.org/abs/2401.00001")


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(BookError, match=r"no\.bib.*does not exist"):
        citations.read([tmp_path / "no.bib"])
    (tmp_path / "bad.bib").write_text("@article{a, author = ")
    with pytest.raises(BookError, match=r"bad\.bib is not valid BibTeX"):
        citations.read([tmp_path / "bad.bib"])
