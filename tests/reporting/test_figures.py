import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    with pytest.raises(ValueError, match="alt is empty"):
        figures.svg(figure, " ")


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
