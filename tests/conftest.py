"""A real browser, started once for all tests that look at pages, and one thread for those that want no more."""

import contextlib
import os
import shutil
import signal

import pytest
from hypothesis import settings

# A process that was started in the background ignores interrupts, and hands that on; the tests send some.
with contextlib.suppress(ValueError):  # not in the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every machine and in every run; a machine under load is slow, not wrong.
settings.register_profile("book", derandomize=True, deadline=None)
settings.load_profile("book")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.fixture
def one_thread():
    """Tiny models gain nothing from several threads, which on a busy machine mostly wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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
