import os

import pytest

from manyheads.progress import progress, quiet


def test_stored_output_stays_quiet(monkeypatch, capsys):
    monkeypatch.setenv("MANYHEADS_EXPLORE", "static")
    assert list(progress(range(3), delay=0)) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


def test_a_person_sees_long_work_only(monkeypatch, capsys):
    monkeypatch.delenv("MANYHEADS_EXPLORE", raising=False)
    assert list(progress(range(3))) == [0, 1, 2]
    assert capsys.readouterr().err == ""
    assert list(progress(range(3), delay=0)) == [0, 1, 2]
    assert "3" in capsys.readouterr().err


@pytest.mark.parametrize("before", [None, "static", "live"])
def test_quiet_work_shows_no_bar_and_leaves_the_setting(monkeypatch, capsys, before):
    if before is None:
        monkeypatch.delenv("MANYHEADS_EXPLORE", raising=False)
    else:
        monkeypatch.setenv("MANYHEADS_EXPLORE", before)
    with quiet():
        list(progress(range(3), delay=0))
    assert capsys.readouterr().err == ""
    assert os.environ.get("MANYHEADS_EXPLORE") == before
