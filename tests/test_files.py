import os

import pytest

from manyheads.files import write_whole


def test_text_and_bytes_are_written_as_they_are(tmp_path):
    assert write_whole(tmp_path / "deep" / "a.txt", "é\n").read_bytes() == "é\n".encode()
    assert write_whole(tmp_path / "b", b"\0\r\n").read_bytes() == b"\0\r\n"


def test_an_interrupt_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "a", "old")

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_has_ordinary_permissions(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    assert write_whole(tmp_path / "a", "x").stat().st_mode == plain.stat().st_mode
