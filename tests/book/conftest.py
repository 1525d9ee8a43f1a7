"""The built site and a server for it, each made once."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bookkit.project import Project
from bookkit.site import serve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def site(root):
    """The site as ``make book`` leaves it; seconds when nothing has changed since."""
    done = subprocess.run(
        [sys.executable, "-m", "bookkit", "build"], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "_build" / "html"


@pytest.fixture(scope="session")
def address(site):
    """Address of a server on this machine that shows the site."""
    with serve.server(Project(ROOT), 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://{serve.HOST}:{running.server_port}"
        running.shutdown()
