import pytest
from IPython.core.interactiveshell import InteractiveShell

from manyheads.reporting import glue


def test_it_returns_the_text_a_reader_sees():
    assert glue("share", 0.12345, ".1%") == "12.3%"
    assert glue("n", 1234567, ",") == "1,234,567"


def test_it_publishes_what_myst_nb_reads(monkeypatch):
    published = []
    monkeypatch.setattr("IPython.get_ipython", lambda: InteractiveShell)
    monkeypatch.setattr("IPython.display.publish_display_data", lambda data, meta: published.append((data, meta)))
    glue("n", 3)
    assert published == [
        (
            {"application/papermill.record/text/plain": "3"},
            {"scrapbook": {"name": "n", "mime_prefix": "application/papermill.record/"}},
        )
    ]


def test_a_name_that_a_role_cannot_carry_is_refused():
    with pytest.raises(ValueError, match="name='a b'"):
        glue("a b", 1)
