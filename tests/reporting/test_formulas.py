import html
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.reporting.formulas import to_html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"order $\varepsilon^{-(k-1)/n}$", "order <i>ε</i><sup>−(<i>k</i>−1)/<i>n</i></sup>"),
        ("$D^2$ of $4E^2$", "<i>D</i><sup>2</sup> of 4<i>E</i><sup>2</sup>"),
        (r"$\log_{10} x \le 3$", "log<sub>10</sub> <i>x</i> ≤ 3"),
        (r"$\lceil{E \sqrt{2 - 1/H}}\rceil$", "⌈<i>E</i> √(2 − 1/<i>H</i>)⌉"),
        ("$x < y$ & <b>", "<i>x</i> &lt; <i>y</i> &amp; &lt;b&gt;"),
        (r"$3.7 \times 10^{-2}$", "3.7 × 10<sup>−2</sup>"),
    ],
)
def test_formulas_are_set_without_a_script(text, shown):
    assert to_html(text) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r"$\epsilon$", r"unknown TeX command '\\\\epsilon'; did you mean '\\\\varepsilon'"),
        ("$x^{2$", "braces that do not match"),
        ("$x}$", "braces that do not match"),
        ("$x^$", "without a content"),
        ("${x^}$", "without a content"),
    ],
)
def test_what_cannot_be_set_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        to_html(text)


@given(st.text().filter(lambda text: "$" not in text))
def test_words_are_only_escaped(text):
    assert to_html(text) == html.escape(text)


@given(st.text(st.sampled_from(r"{}^_x-1<& "), min_size=1))
def test_any_formula_gives_well_formed_html_or_a_plain_error(tex):
    shown, problem = "", ""
    try:
        shown = to_html(f"${tex}$")
    except ValueError as error:
        problem = str(error)
    assert not problem or problem.startswith(f"the formula ${tex}$ has braces")
    ElementTree.fromstring(f"<p>{shown}</p>")
