"""Show the finished site in a browser on this machine."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from bookkit.errors import BookError
from bookkit.project import Project

HOST, PORT = "127.0.0.1", 8000


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Leave the terminal to the address of the book."""


def server(project: Project, port: int = PORT) -> ThreadingHTTPServer:
    """Return a server of ``_build/html`` that only this machine can reach; port 0 takes any free one.

    Raises
    ------
    BookError
        When the book is not built, or the port cannot be had.
    """
    if not (project.html / "index.html").is_file():
        raise BookError(f"there is no book in {project.html} yet: run 'make book' first")
    if not 0 <= port <= 65535:
        raise BookError(f"--port {port} is not a port; choose one from 1024 to 65535, such as {PORT}")
    try:
        return ThreadingHTTPServer((HOST, port), partial(_Quiet, directory=str(project.html)))
    except OSError as error:
        raise BookError(f"port {port} cannot be used ({error.strerror}); try --port {port + 1}") from None


def serve(project: Project, port: int = PORT) -> None:
    """Serve until interrupted."""
    with server(project, port) as running:
        print(f"The book is at http://{HOST}:{running.server_port}/ (Ctrl-C stops)", flush=True)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print()
