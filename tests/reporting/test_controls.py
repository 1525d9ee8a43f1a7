import json

import pytest
from ipywidgets.embed import embed_data

from bookkit.project import Project
from bookkit.site import vendor
from manyheads.reporting import Axis, explore, figures
from manyheads.reporting.controls import resolve, sliders

PROJECT = Project.find()
STEPS = ["1: the tokens", "2: everyone finds a partner", "3: everyone has a score", "4: the class token looks"]
# What a page of the book loads, in its order; ``{}`` is a folder or the text of a file.
PAGE = """<!doctype html><html><head><meta charset="utf-8"><style>{css}</style></head><body>
<script src="{scripts}/require.js"></script>
<script src="{scripts}/@jupyter-widgets/html-manager/dist/embed-amd.js"></script>
<script type="application/vnd.jupyter.widget-state+json">{state}</script>
<div class="widget-subarea"><script type="application/vnd.jupyter.widget-view+json">{view}</script></div>
</body></html>"""
# Boxes of what is read and moved. Text has a box of its own: it can stick out of its element.
BOXES = """() => [...document.querySelectorAll(".widget-hslider")].map(row => {
  const box = r => ({left: r.left, right: r.right, top: r.top, bottom: r.bottom});
  const text = selector => {
    const range = document.createRange();
    range.selectNodeContents(row.querySelector(selector));
    return box(range.getBoundingClientRect());
  };
  return {
    label: text(".widget-label"),
    track: box(row.querySelector(".slider-container").getBoundingClientRect()),
    value: text(".widget-readout"),
  };
})"""


def draw(step, example, sharpness):
    figure, _ = figures.canvas(3, 1)
    return figure, "a figure"


def overlap(a, b):
    return min(a["right"], b["right"]) - max(a["left"], b["left"]) > 1 and (
        min(a["bottom"], b["bottom"]) - max(a["top"], b["top"]) > 1
    )


def test_every_slider_leaves_the_same_room_for_its_label():
    axes = {"a": Axis(STEPS, "Step"), "b": Axis([1], "Tolerance"), "c": Axis([1], "T")}
    made = sliders(resolve(axes))
    assert {slider.style.description_width for slider in made.values()} == {"10ch"}
    assert {name: slider._dom_classes for name, slider in made.items()} == {"a": ("mh-words",), "b": (), "c": ()}
    (long,) = sliders(resolve({"a": Axis([1], "a label that is too long for a phone")})).values()
    assert long.style.description_width == "16ch"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    scripts = vendor.fetch(PROJECT)
    if scripts is None:
        pytest.skip("the browser scripts could not be fetched")
    axes = {"step": Axis(STEPS, "Step", STEPS[1]), "example": Axis([1, 2], "Example")}
    axes["sharpness"] = Axis([5, 65536], "A sharpness with a long name", format="{:,}".format)
    data = embed_data(views=[explore(draw, static=True, **axes).widget], drop_defaults=False)
    page = tmp_path_factory.mktemp("page") / "page.html"
    css = (PROJECT.book / "_static" / "book.css").read_text(encoding="utf-8")
    state, (view,) = json.dumps(data["manager_state"]), map(json.dumps, data["view_specs"])
    page.write_text(PAGE.format(css=css, scripts=scripts.as_uri(), state=state, view=view), encoding="utf-8")
    return page.as_uri()


@pytest.fixture(params=[390, 1000])
def page(request, chromium, address):
    page = chromium.new_page(viewport={"width": request.param, "height": 600})
    page.goto(address)
    page.wait_for_selector(".mh-explorer figure svg")
    yield page
    page.close()


def collisions(page):
    """Pairs of a label, a track or a value that share a place."""
    rows = page.evaluate(BOXES)
    assert len(rows) == 3
    boxes = [(number, name, box) for number, row in enumerate(rows) for name, box in row.items()]
    return [(a[:2], b[:2]) for i, a in enumerate(boxes) for b in boxes[:i] if overlap(a[2], b[2])]


@pytest.mark.browser
@pytest.mark.slow
def test_sliders_line_up_and_their_words_keep_clear_of_each_other(page):
    tracks = []
    for index in range(len(STEPS)):
        handle = page.get_by_role("slider").first
        handle.press("Home")
        for _ in range(index):
            handle.press("ArrowRight")
        page.wait_for_function(
            "text => document.querySelector('.widget-readout').textContent === text", arg=STEPS[index]
        )
        assert collisions(page) == []
        rows = page.evaluate(BOXES)
        tracks += [(round(row["track"]["left"]), round(row["track"]["right"])) for row in rows]
        for box in (box for row in rows for box in row.values()):
            assert box["left"] >= 0
            assert box["right"] <= page.viewport_size["width"]
    assert len(set(tracks)) == 1, "tracks differ between sliders, or move while a reader drags"
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


@pytest.mark.browser
@pytest.mark.slow
def test_without_their_style_they_do_not(page):
    page.evaluate("document.querySelector('.mh-explorer style').remove()")
    tracks = {round(row["track"]["right"]) for row in page.evaluate(BOXES)}
    assert len(tracks) > 1 or collisions(page)
