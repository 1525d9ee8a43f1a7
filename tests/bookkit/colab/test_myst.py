import pytest

from bookkit.colab.myst import Code, Directive, Math, Target, Text, parse


def test_text_and_targets():
    assert parse("(sec-a)=\n## Head\n\ntext") == [Target("sec-a"), Text("## Head\n\ntext")]


@pytest.mark.parametrize("source", ["<!-- note -->", "<!--\nlong\nnote\n-->", "% a comment", "+++", '+++ {"a": 1}'])
def test_comments_vanish(source):
    assert parse(f"before\n\n{source}\n\nafter") == [Text("before\n\nafter")]


def test_code_stays_as_it_is():
    source = "```python\n# {cite}`x`\n(a)=\n```"
    assert parse(source) == [Code(source)]


def test_directive_with_options_and_argument():
    [block] = parse("```{prf:theorem} Its name\n:label: thm-a\n:nonumber:\n\nBody.\n```")
    assert block == Directive("prf:theorem", "Its name", {"label": "thm-a", "nonumber": ""}, "Body.")
    assert block.label == "thm-a"


def test_options_in_yaml():
    [block] = parse("```{figure} a.png\n---\nname: fig-a\nalt: A picture\n---\nCaption\n```")
    assert block.options == {"name": "fig-a", "alt": "A picture"}
    assert block.body == "Caption"


def test_longer_fences_hold_shorter_ones():
    [block] = parse("````{note}\n```{math}\nx\n```\nafter\n````")
    assert parse(block.body) == [Directive("math", body="x"), Text("after")]


def test_colon_fences_of_one_length_nest():
    [block] = parse(":::{note}\n:::{tip}\ninner\n:::\nouter\n:::")
    assert [type(b) for b in parse(block.body)] == [Directive, Text]


def test_code_in_a_colon_fence_may_show_colon_fences():
    [block, after] = parse(":::{note}\n```\n:::\n```\n:::\nafter")
    assert block.body == "```\n:::\n```"
    assert after == Text("after")


def test_a_fence_that_is_never_closed_ends_with_the_cell():
    [block] = parse("```{note}\nall of it")
    assert block == Directive("note", body="all of it")
    assert parse("```py\nx") == [Code("```py\nx\n```")]


@pytest.mark.parametrize(
    ("source", "block"),
    [
        ("$$ x $$", Math("x")),
        ("$$ x $$ (eq-a)", Math("x", "eq-a")),
        ("$$\nx\ny\n$$ (eq-a)", Math("x\ny", "eq-a")),
        ("$$\nx$$", Math("x")),
    ],
)
def test_display_math_between_dollars(source, block):
    assert parse(f"a\n\n{source}\n\nb") == [Text("a"), block, Text("b")]
