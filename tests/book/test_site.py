"""The built pages in a real browser: they move, stay at home, are accessible, and fit a phone."""

import itertools
import math
import re
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from bookkit.notebooks import toc
from bookkit.project import Project

pytestmark = pytest.mark.browser

PROJECT = Project.find()
CHAPTERS = [f"book/{chapter.stem}.html" for chapter in toc.chapters(PROJECT)]
PAGES = [
    f"{name}.html"
    for name in re.findall(r"(?:root|file): (\S+)", (PROJECT.root / "_toc.yml").read_text(encoding="utf-8"))
]
WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


# A page is read once everything on it is there: a slow machine takes longer, and shows the same.
SETTLED = """() => {
    const every = (selector, test) => [...document.querySelectorAll(selector)].every(test);
    const scrolls = block => block.scrollWidth > block.clientWidth || block.scrollHeight > block.clientHeight;
    return document.readyState === "complete" && document.fonts.status === "loaded"
        && every("span.math, div.math", formula => formula.querySelector("mjx-container"))
        && every('script[type="application/vnd.jupyter.widget-view+json"]',
                 view => view.previousElementSibling?.matches(".widget-subarea:has(*)"))
        && every('[role="slider"]', handle => handle.ariaLabel)
        && every("pre", block => block.hasAttribute("tabindex") && (block.tabIndex === 0) === scrolls(block));
}"""
# The one figure of an explorer that a reader sees, once it is that of these positions and says what the sliders say.
SHOWN = """([explorer, positions, before]) => {
    const handles = [...explorer.querySelectorAll('[role="slider"]')];
    const readouts = [...explorer.querySelectorAll(".widget-readout")];
    const shown = [...explorer.querySelectorAll("figure")].filter(figure => figure.checkVisibility());
    const settled = shown.length === 1 && shown[0].ariaLabel !== before
        && handles.every((handle, i) => Math.round(handle.ariaValueNow) === positions[i])
        && handles.every((handle, i) => shown[0].ariaLabel.includes(`${handle.ariaLabel} = ${readouts[i].innerText}`));
    return settled && [shown[0].ariaLabel, shown[0].innerHTML];
}"""
LATE = """{
    const script = document.createElement("script");
    script.src = document.currentScript.src + "&late";
    setTimeout(() => document.head.append(script), 3000);
}"""
PATIENCE = 120_000  # milliseconds; waited for in full only where something is wrong


class Visit:
    """A settled page in the browser, with what it asked for and complained about."""

    def __init__(self, chromium, url, late=None, **context):
        self.context = chromium.new_context(**context)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        self.page.on("console", lambda m: self.complaints.append(f"console: {m.text}") if m.type == "error" else None)
        self.page.on("response", lambda r: self.complaints.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
        if late:
            self.page.route(f"**/{late}*", self._begin_late)
        self.page.goto(url, wait_until="networkidle")
        self.page.wait_for_function(SETTLED)

    @staticmethod
    def _begin_late(route):
        """Hand out a script that begins its work three seconds after it has come, as on a busy machine."""
        if route.request.url.endswith("&late"):
            route.continue_()
        else:
            route.fulfill(content_type="text/javascript", body=LATE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def outside(self):
        """Requests that left this machine."""
        return [url for url in self.requests if urlsplit(url).scheme in ("http", "https") and "127.0.0.1" not in url]

    def barriers(self):
        """What axe finds that keeps a reader out, in words."""
        found = Axe().run(self.page, options=WCAG)
        assert found.response["passes"], "axe checked nothing"
        return found.generate_report() if found.violations_count else ""


@pytest.fixture(scope="module", params=[("light", 1200), ("dark", 390)], ids=["light, wide", "dark, phone"])
def looks(request):
    scheme, width = request.param
    return {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_stays_at_home_follows_the_theme_fits_its_window_and_is_accessible(chromium, address, path, looks):
    with Visit(chromium, f"{address}/{path}", **looks) as visit:
        assert visit.requests
        assert visit.outside() == []
        assert visit.complaints == []
        assert visit.page.locator("html").get_attribute("data-theme") == looks["color_scheme"]
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= looks["viewport"]["width"]
        assert visit.barriers() == ""


def test_a_page_is_as_accessible_on_a_slow_machine(chromium, address, site):
    """Code that scrolls sideways is reached with the keyboard once the theme's script has run, which may be late."""
    path = max(PAGES, key=lambda path: (site / path).read_text(encoding="utf-8").count("<pre"))
    phone = {"viewport": {"width": 390, "height": 900}}
    with Visit(chromium, f"{address}/{path}", late="pydata-sphinx-theme.js", **phone) as visit:
        assert visit.barriers() == ""
        assert visit.page.locator('pre[tabindex="0"]').count() > 0


def move(slider, index):
    """Put a slider on its index-th value with the keyboard, as a reader without a mouse does."""
    slider.focus()
    slider.press("Home")
    for _ in range(index):
        slider.press("ArrowRight")


@pytest.mark.parametrize("path", CHAPTERS)
def test_every_explorer_moves_over_its_whole_range_with_no_kernel(chromium, address, path):
    with Visit(chromium, f"{address}/{path}", viewport={"width": 1000, "height": 900}) as visit:
        explorers = visit.page.locator(".mh-explorer")
        assert explorers.count() >= 2
        for explorer in explorers.all():
            explorer.scroll_into_view_if_needed()
            handles = explorer.get_by_role("slider").all()
            sizes = [round(float(handle.get_attribute("aria-valuemax"))) + 1 for handle in handles]
            words, pictures = None, set()
            for positions in itertools.product(*map(range, sizes)):
                if words is None or positions[-1] == 0:
                    for handle, index in zip(handles, positions, strict=True):
                        move(handle, index)
                else:
                    handles[-1].press("ArrowRight")
                shown = visit.page.wait_for_function(SHOWN, arg=[explorer.element_handle(), positions, words])
                words, picture = shown.json_value()
                pictures.add(picture)
            assert len(pictures) == math.prod(sizes), "two positions of the sliders show the same picture"
        assert visit.complaints == []
        assert visit.outside() == []


@pytest.mark.parametrize("path", CHAPTERS)
def test_equations_and_widgets_share_a_page(chromium, address, path):
    with Visit(chromium, f"{address}/{path}") as visit:
        assert visit.page.locator("mjx-container").count() > 10
        assert visit.page.locator("mjx-merror").count() == 0
        assert visit.page.locator(".mh-explorer figure svg").count() >= 2


@pytest.mark.parametrize("path", CHAPTERS)
def test_figures_take_the_ink_of_the_page(chromium, address, path):
    inks = {}
    for scheme in ("light", "dark"):
        with Visit(chromium, f"{address}/{path}", color_scheme=scheme) as visit:
            ink = "elements => [...new Set(elements.map(e => getComputedStyle(e).fill))]"
            texts = visit.page.locator("figure svg text").evaluate_all(ink)
            body = visit.page.locator(".bd-article p").first.evaluate("e => getComputedStyle(e).color")
            assert texts == [body]
            inks[scheme] = body
    assert inks["light"] != inks["dark"]


@pytest.mark.parametrize("path", CHAPTERS)
def test_without_javascript_a_still_figure_stands_in_for_each_explorer(chromium, address, path):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/{path}")
    still = page.locator("noscript figure")
    assert still.count() >= 2
    assert all(figure.is_visible() for figure in still.all())
    context.close()


@pytest.mark.parametrize("path", CHAPTERS)
def test_a_chapter_says_when_it_ran_and_offers_its_colab_copy(chromium, address, site, path):
    with Visit(chromium, f"{address}/{path}") as visit:
        text = visit.page.locator(".bd-article").inner_text()
        assert re.search(r"Last executed 20\d\d-\d\d-\d\d", text)
        link = visit.page.get_by_role("link", name="Colab copy").get_attribute("href")
        assert (site / "book" / link).resolve().is_file()


def test_the_landing_page_lists_every_chapter_with_time_device_and_date(chromium, address):
    with Visit(chromium, f"{address}/book/index.html") as visit:
        for chapter in toc.chapters(PROJECT):
            row = visit.page.locator("table tr", has_text=chapter.title)
            assert re.search(r"\d+ s", row.inner_text())
            assert re.search(r"20\d\d-\d\d-\d\d", row.inner_text())
            assert "CPU" in row.inner_text() or "GPU" in row.inner_text()


FAULTS = """() => {
    const wide = document.createElement("div");
    wide.style.width = "2000px"; wide.textContent = "wide";
    const blind = document.createElement("img");
    blind.src = "http://third-party.invalid/x.png";
    document.querySelector("main").append(wide, blind);
    setTimeout(() => { throw new Error("planted"); });
}"""


def test_the_checks_see_a_planted_fault(chromium, address):
    """A page that asks a third party, throws, overflows and hides text from readers is reported on every count."""
    with Visit(chromium, f"{address}/{PAGES[0]}", viewport={"width": 390, "height": 900}) as visit:
        with visit.page.expect_event("pageerror"), visit.page.expect_event("requestfailed"):
            visit.page.evaluate(FAULTS)
        assert visit.outside() == ["http://third-party.invalid/x.png"]
        assert any("planted" in complaint for complaint in visit.complaints)
        assert visit.page.evaluate("document.documentElement.scrollWidth") > 390
        assert "image-alt" in visit.barriers()
