import threading
import urllib.request

import pytest

from bookkit.errors import BookError
from bookkit.site import serve


@pytest.fixture
def site(project):
    project.html.mkdir(parents=True)
    (project.html / "index.html").write_text("the book")
    return project


def test_a_book_that_is_not_built(project):
    with pytest.raises(BookError, match=r"no book in .*run 'make book' first"):
        serve.server(project)


def test_only_this_machine_gets_the_pages(site):
    with serve.server(site, 0) as running:
        assert running.server_address[0] == "127.0.0.1"
        threading.Thread(target=running.serve_forever, daemon=True).start()
        with urllib.request.urlopen(f"http://127.0.0.1:{running.server_port}/") as answer:
            assert answer.read() == b"the book"
        running.shutdown()


def test_a_port_that_is_taken(site):
    with serve.server(site, 0) as running:
        port = running.server_port
        with pytest.raises(BookError, match=rf"port {port} cannot be used .*try --port {port + 1}"):
            serve.server(site, port)


def test_a_port_that_is_none(site):
    with pytest.raises(BookError, match="--port 70000 is not a port"):
        serve.server(site, 70000)


def test_interrupting_ends_quietly(site, monkeypatch, capsys):
    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(serve.ThreadingHTTPServer, "serve_forever", interrupt)
    serve.serve(site, 0)
    assert "Ctrl-C stops" in capsys.readouterr().out
