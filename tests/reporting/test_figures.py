import re
from functools import partial
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.artist import Artist
from matplotlib.text import Text

from manyheads.reporting import figures


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colour", figures.PALETTE)
@pytest.mark.parametrize("page", ["#ffffff", "#14181e"])
def test_every_colour_stands_out_on_light_and_dark_pages(colour, page):
    assert contrast(colour, page) >= 3


def drawn(alt="a line"):
    figure, ax = figures.canvas()
    ax.plot([1, 2, 3], [1, 4, 9], label="squares", **figures.style(0))
    ax.set_xlabel("n")
    ax.legend()
    ax.text(2, 5, "note")
    return figures.svg(figure, alt)


def test_the_svg_is_well_formed_and_follows_the_page_colour():
    text = drawn()
    root = ElementTree.fromstring(text)
    assert root.get("aria-label") == "a line"
    assert "currentColor" in text
    assert "#000000" not in text
    assert "#ffffff" not in text
    assert "<style" not in text  # it would apply to the whole page
    assert figures.BLUE.lower() in text


def test_the_same_figure_gives_the_same_bytes():
    assert drawn() == drawn()


def test_ids_are_used_and_differ_between_figures():
    first, second = drawn("one"), drawn("two")
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for text, known in zip((first, second), ids, strict=True):
        assert set(re.findall(r'(?:href="|url\()#([^")]+)', text)) == known


def test_a_figure_without_alt_text_is_refused():
    figure, _ = figures.canvas()
    with pytest.raises(ValueError, match="alt=' ' is empty"):
        figures.svg(figure, " ")


def test_what_is_not_a_figure_is_refused():
    with pytest.raises(ValueError, match=r"figure=None is not a figure: make one with figures\.canvas"):
        figures.svg(None, "a line")


class Counted(Artist):
    drawings = 0

    def draw(self, renderer):
        self.drawings += 1


def crowded():
    figure, axes = figures.canvas(columns=2)
    axes[0].plot([1, 2, 3], [1e6, -4e6, 9e6], label="a series with a long name")
    axes[0].set(xlabel="first", ylabel="two lines\nof a label", title="title", yticks=[-4e6, 9e6])
    axes[0].set_yticklabels(["minus four million", "nine million"])
    axes[1].set_xlabel("second")
    figure.legend(loc="outside lower center")
    return figure


def test_a_figure_is_drawn_once():
    figure, ax = figures.canvas()
    counted = ax.add_artist(Counted())
    figures.svg(figure, "a line")
    assert counted.drawings == 1


def test_drawing_once_makes_room_for_everything_as_drawing_twice_does(monkeypatch):
    once = figures.svg(crowded(), "crowded")

    class Twice:
        def __init__(self, figure):
            self.print_svg = partial(figure.savefig, format="svg", facecolor="none")

    monkeypatch.setattr(figures.picture, "FigureCanvasSVG", Twice)
    assert figures.svg(crowded(), "crowded") == once


def test_no_text_is_cut_off():
    figure = crowded()
    figures.svg(figure, "crowded")
    page = figure.bbox
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    assert len(texts) > 10
    boxes = {text.get_text(): text.get_window_extent() for text in texts}
    outside = [text for text, box in boxes.items() if not (page.x0 <= box.x0 and page.y0 <= box.y0)]
    outside += [text for text, box in boxes.items() if not (box.x1 <= page.x1 and box.y1 <= page.y1)]
    assert outside == []


@given(st.text(min_size=1).filter(str.strip))
@settings(max_examples=10, deadline=None)
def test_any_alt_text_is_escaped(alt):
    head = figures.Picture(figures.canvas(1, 1)[0], alt).html.split("><svg")[0]
    assert head.count('"') == 6
    assert "<" not in head[1:]


def test_a_picture_has_text_for_terminals_and_html_for_pages():
    figure, _ = figures.canvas()
    bundle = figures.show(figure, "nothing yet")._repr_mimebundle_()
    assert bundle["text/plain"] == "Figure: nothing yet"
    assert bundle["text/html"].startswith("<figure")
