"""The script that runs before the widgets do, in a real browser on the built small book."""

import threading

import pytest

from bookkit.site import serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def page(built, chromium):
    if not built.vendor.is_dir():
        pytest.skip("the browser scripts could not be fetched")
    with serve.server(built, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        page = chromium.new_page()
        page.seen, page.failures = [], []
        page.on("request", lambda request: page.seen.append(request.url))
        page.on("pageerror", lambda error: page.failures.append(str(error)))
        page.goto(f"http://127.0.0.1:{running.server_port}/book/01_first.html")
        page.wait_for_selector('[role="slider"][aria-valuetext="1"]')
        page.wait_for_selector("mjx-container")
        yield page
        page.close()
        running.shutdown()


def pictures(page):
    return [text for text in page.locator('p[role="img"]').all_inner_texts() if text]


def test_no_request_leaves_this_machine(page):
    outside = [url for url in page.seen if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))]
    assert outside == []
    assert any("widgets-local.js" in url for url in page.seen)


def test_widgets_and_formulas_share_a_page_without_an_error(page):
    assert page.failures == []
    assert page.evaluate("typeof MathJax.typesetPromise") == "function"


def test_the_slider_has_a_name_and_says_what_it_shows(page):
    handle = page.locator('[role="slider"]')
    assert handle.get_attribute("aria-label") == "heads"
    handle.focus()
    for value, picture in (("2", "picture of 4"), ("4", "picture of 8")):
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(f'[role="slider"][aria-valuetext="{value}"]')
        assert pictures(page) == [picture]


def test_formulas_in_widgets_are_set(page):
    page.evaluate(
        r"""() => {
          const note = document.createElement("p");
          note.id = "note";
          note.textContent = "\\(x^2\\)";
          document.body.append(note);
          MathJax.Hub.Queue(["Typeset", MathJax.Hub, note]);
        }"""
    )
    page.wait_for_selector("#note mjx-container")
