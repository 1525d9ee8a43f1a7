import pytest
from bs4 import BeautifulSoup

from bookkit.colab.citations import Citation
from bookkit.colab.labels import Labels
from bookkit.colab.markdown import Plain, leftovers

WORKS = {
    "ali2024": Citation("Ali and Bo", "2024", "Ali, Bo. *T*. 2024"),
    "cy2023": Citation("Cy et al.", "2023", "Cy."),
}


def plain(*sources: str, chapter: int = 2, values=None, others=None) -> str:
    labels = Labels.collect({chapter: sources, **(others or {})})
    converter = Plain(chapter, labels, WORKS, values or {})
    converted = [converter.convert(source) for source in sources]
    assert [leftovers(text) for text in converted] == [[] for _ in sources]
    return "\n---\n".join(converted)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("```{math}\nx = 1\n```", "$$\nx = 1\n$$"),
        ("```{math}\n:label: eq-a\nx\n```", "$$\nx\n\\tag{2.1}\n$$"),
        ("$$ x $$ (eq-a)", "$$\nx\n\\tag{2.1}\n$$"),
        ("$$\na \\\\ b\n$$", "$$\n\\begin{split}\na \\\\ b\n\\end{split}\n$$"),
        ("```{note}\nMind this.\n```", "> **Note.** Mind this."),
        (":::{warning}\nMind this.\n:::", "> **Warning.** Mind this."),
        ("```{admonition} What you need\nA laptop.\n```", "> **What you need**\n>\n> A laptop."),
        ("```{prf:theorem} Upper\nIt holds.\n```", "> **Theorem 2.1** (Upper). It holds."),
        ("```{prf:lemma}\n:nonumber:\nIt holds.\n```", "> **Lemma**. It holds."),
        ("```{prf:proof}\nClear.\n```", "> *Proof.* Clear. ∎"),
        ("```{prf:proof}\nSo\n$$\nx\n$$\n```", "> *Proof.* So\n>\n> $$ x $$\n>\n> ∎"),
        ("```{prf:proof}\n:class: dropdown\nYes.\n```", "<details>\n<summary>Proof</summary>\n\nYes.\n\n</details>"),
        ("```{exercise} Try\n:label: ex-a\nDo it.\n```", "> **Exercise 2.1** (Try). Do it."),
        ("```{code-block} python\nx = 1\n```", "```python\nx = 1\n```"),
        ("```{figure} a.png\n:name: fig-a\n:alt: dots\nSome dots.\n```", "*Fig. 2.1: Some dots.*"),
        ("```{image} a.png\n:alt: dots\n```", "*Figure: dots*"),
        ("![dots](../_static/a.png)", "*(picture: dots)*"),
        ("![dots](https://example.org/a.png)", "![dots](https://example.org/a.png)"),
        ("```{dropdown} More\nHidden.\n```", "<details>\n<summary>More</summary>\n\nHidden.\n\n</details>"),
        ("```{table} Costs\n:name: tab-a\n| a |\n|---|\n```", "**Table 2.1: Costs**\n\n| a |\n|---|"),
        ("```{list-table}\n* - a\n  - b\n* - 1\n  - 2|3\n```", "| a | b |\n|---|---|\n| 1 | 2\\|3 |"),
        ("```{toctree}\na\n```", ""),
        ("`````{tab-set}\n````{tab-item} One\nFirst.\n````\n`````", "**One**\n\nFirst."),
        ("<!-- facts -->", ""),
    ],
)
def test_blocks(source, expected):
    assert plain(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{cite:t}`ali2024` and {cite:p}`ali2024,cy2023`", "Ali and Bo (2024) and (Ali and Bo, 2024; Cy et al., 2023)"),
        ("{math}`x`, $y$ and `{cite}` or ``{eq}`a` ``", "$x$, $y$ and `{cite}` or ``{eq}`a` ``"),
        ("{py:func}`~manyheads.theory.cost` {class}`Spec`", "`cost` `Spec`"),
        ("{sub}`1` {kbd}`Enter` {download}`here <a.zip>`", "<sub>1</sub> <kbd>Enter</kbd> here"),
        ("[there](02_b.ipynb), [out](https://example.org), [up](#sec)", "there, [out](https://example.org), up"),
        ("$f[x](y)$ stays", "$f[x](y)$ stays"),
        ("[in $[0, 1]$ too](a.md)", "in $[0, 1]$ too"),
        ("a <!-- hidden --> b", "a  b"),
        ("<project:01_a.ipynb#sec-x>", "x"),
    ],
)
def test_running_text(source, expected):
    assert plain(source) == expected


def test_references_carry_the_numbers_of_the_book():
    text = plain(
        "```{math}\n:label: eq-a\nx\n```\n````{prf:theorem}\n:label: thm-a\n```{math}\n:label: eq-b\ny\n```\n````",
        "```{prf:theorem}\n:label: thm-b\nA\n```\n```{prf:lemma}\n:label: lem-a\nB\n```",
        "{eq}`eq-a` {eq}`eq-b` {prf:ref}`thm-a` {prf:ref}`thm-b` {prf:ref}`lem-a` {prf:ref}`it <thm-a>` [](#thm-b)",
    )
    assert text.endswith("(2.1) (2.2) Theorem 2.1 Theorem 2.2 Lemma 2.1 it Theorem 2.2")


def test_references_reach_other_chapters_and_sections():
    others = {1: ["(sec-a)=\n## Of heads\n\ntext", "```{prf:lemma}\n:label: lem-z\nA\n```"]}
    text = plain("{ref}`sec-a`, {prf:ref}`lem-z`, {numref}`see %s <lem-z>`, {ref}`sec-not-there`", others=others)
    assert text == "Of heads, Lemma 1.1, see 1.1, not there"


def test_solutions_name_their_exercise():
    exercise = "```{exercise}\n:label: ex-a\nDo.\n```"
    text = plain(exercise, "```{solution} ex-a\n:label: sol-a\nDone.\n```", "{ref}`sol-a`")
    assert "<summary>Solution to Exercise 2.1</summary>\n\nDone." in text
    assert text.endswith("Solution to Exercise 2.1")


def test_exercises_and_solutions_around_code_cells():
    start = plain(
        "```{exercise-start}\n:label: ex-a\n```\nDo.\n```{exercise-end}\n```", "```{solution-start} ex-a\n```"
    )
    assert start == "**Exercise 2.1**\n\nDo.\n---\n**Solution to Exercise 2.1**"


def test_display_math_in_a_quote_takes_one_line():
    text = plain("````{prf:theorem}\nSo\n\n```{math}\na &= b \\\\\nc &= d\n```\n````")
    assert "> $$ \\begin{split} a &= b \\\\ c &= d \\end{split} $$" in text.splitlines()


def test_nested_directives_are_all_converted():
    text = plain("`````{prf:proof}\n````{note}\n```{tip}\nDeep.\n```\n````\n`````")
    assert text == "> *Proof.*\n>\n> > **Note.**\n> >\n> > > **Tip.** Deep. ∎"


def test_glued_values_with_and_without_a_format():
    values = {"error": "0.00123", "name": "softmax"}
    source = "{glue:text}`error`, {glue:text}`error:.1e`, {glue:text}`name`, {glue:text}`lost`"
    assert plain(source, values=values) == "0.00123, 1.2e-03, softmax, (see the output named lost)"


def test_the_bibliography_lists_what_the_chapter_cites():
    assert plain("{cite:p}`ali2024`", "```{bibliography}\n:filter: docname in docnames\n```").endswith(
        "- Ali, Bo. *T*. 2024"
    )


@pytest.mark.parametrize("source", ["{eq}`a`", "```{note}\nx\n```", ":::{tip}\nx\n:::", "(a)=", "> {cite}`x`"])
def test_leftovers_are_found(source):
    assert leftovers(f"text\n\n{source}\n\nmore")


@pytest.mark.parametrize("source", ["plain `{eq}` text", "```python\nx = '{eq}`a`'\n```", "$\\{x\\}$ and {a}"])
def test_code_and_braces_are_no_leftovers(source):
    assert leftovers(source) == []


@pytest.mark.slow
def test_numbers_are_those_of_the_site(built):
    page = BeautifulSoup((built.html / "book" / "01_first.html").read_text(), "html.parser").select_one("article")
    words = " ".join(page.get_text(" ").split())
    copy = (built.html / "colab" / "01_first.ipynb").read_text()
    for name in ("Theorem 1.1", "Exercise 1.1", "Solution to Exercise 1.1", "(1.1)"):
        assert name in words
        assert name in copy
