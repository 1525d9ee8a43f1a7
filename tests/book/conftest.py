"""The built site, a server for it and a real browser, each made once."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


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

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture(scope="session")
def chromium():
    """An installed Chromium; skips, visibly, where there is none."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed, and CHROMIUM names none")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS.split())
        yield browser
        browser.close()
