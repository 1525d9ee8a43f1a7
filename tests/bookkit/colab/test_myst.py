import pytest
from docutils import nodes
from docutils.core import publish_doctree
from hypothesis import given
from hypothesis import strategies as st
from myst_parser.parsers.docutils_ import Parser

from bookkit.colab.myst import Code, Directive, Math, Target, Text, parse

EXTENSIONS = {"myst_enable_extensions": ["colon_fence", "dollarmath"], "myst_dmath_double_inline": True}
# what means something in MyST, to be thrown together
PIECES = [
    "```",
    "````",
    "~~~",
    ":::",
    "{note}",
    "{math}",
    "$$",
    "(eq-a)",
    "(a)=",
    "<!--",
    "-->",
    "%",
    "+++",
    "---",
    ">",
]
PIECES += [
    "- ",
    "1. ",
    "# ",
    "    ",
    "\t",
    "\n",
    "\n\n",
    ":label: a",
    ':alt: "\\U',
    "FFFFFFFF",
    '"',
    "|",
    "<div>",
    "\0",
    "\r",
]


def on_the_site(source):
    """The names of the directives and the formulas that MyST itself finds, in order."""
    tree = publish_doctree(source, parser=Parser(), settings_overrides={**EXTENSIONS, "report_level": 5})
    found = tree.findall(lambda node: isinstance(node, nodes.note | nodes.tip | nodes.math_block))
    return [node.astext().strip() if isinstance(node, nodes.math_block) else node.tagname for node in found]


def in_a_copy(source):
    found = []
    for block in parse(source):
        if isinstance(block, Math):
            found.append(block.body)
        elif isinstance(block, Directive):
            found += [block.body] if block.name == "math" else [block.name.replace("div", ""), *in_a_copy(block.body)]
    return list(filter(None, found))


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


def test_a_longer_colon_fence_holds_shorter_ones_and_code():
    [block, after] = parse("::::{note}\n:::{tip}\ninner\n:::\n```\n:::\n```\n::::\nafter")
    assert parse(block.body) == [Directive("tip", body="inner"), Code("```\n:::\n```")]
    assert after == Text("after")


def test_a_colon_fence_ends_at_the_first_line_of_as_many_colons():
    note, text, _ = parse(":::{note}\n:::{tip}\ninner\n:::\nouter\n:::")
    assert (parse(note.body), text) == ([Directive("tip", body="inner")], Text("outer"))


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


@pytest.mark.parametrize(
    "source",
    [
        ":::{note}\n:::{tip}\ninner\n:::\nouter\n:::",
        "::::{note}\n:::{tip}\ninner\n:::\n$$ y $$\n::::",
        "- item\n\n  ```{note}\n  inner\n  ```\n- item\n\n  $$ x $$",
        "> quoted\n>\n> $$ x $$\n\n1. first\n   $$\n   y\n   $$",
        "text\n$$\nx\n$$\nmore\n\n    $$ code $$\n\n$$ never closed",
        "<!--\n```{note}\nhidden\n```\n$$ x $$\n-->\n\n```{tip}\nshown\n```\n\n    ```{note}\n    code\n    ```",
        "```{note}\nA\n````\n~~~{tip}\n```\n~~~\n\n```md\n$$ x $$\n```",
    ],
)
def test_blocks_are_those_of_the_site(source):
    assert in_a_copy(source) == on_the_site(source)


def test_code_in_a_list_stays_in_it():
    assert parse("- a\n\n  ```py\n  x\n  ```\n- b") == [Text("- a"), Code("  ```py\n  x\n  ```"), Text("- b")]


@pytest.mark.parametrize("escape", ["\\UFFFFFFFF", "\\U00110000", "\\uD800"])
def test_an_option_that_escapes_no_character_is_left_in_the_body(escape):
    assert parse(f'```{{note}}\n:alt: "{escape}"\nBody\n```') == [Directive("note", body=f':alt: "{escape}"\nBody')]


@given(st.text() | st.lists(st.sampled_from([*PIECES, *PIECES, "word"]) | st.text(max_size=3)).map("".join))
def test_any_text_has_blocks(source):
    parse(source)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "# ", "- ", "1. ", "> ", "  ", "    ", "\n", "\n    ", "| ", "<b>", "\n<div>\n"]),
            st.lists(st.sampled_from(["plain", "*soft*", "[a](b.md)", "$x$", "`code`", "é", "50%", "a:b"]), min_size=1),
        )
    )
)
def test_plain_markdown_keeps_all_its_words(lines):
    source = "\n".join(start + " ".join(words) for start, words in lines)
    assert all(isinstance(block, Text) for block in parse(source))
    assert " ".join(block.source for block in parse(source)).split() == source.split()
