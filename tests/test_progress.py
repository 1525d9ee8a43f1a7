from manyheads.progress import progress


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
