"""Read MyST Markdown into blocks: text, code, display math, targets and directives.

The grammar is MyST's own, with the extensions that Jupyter Book turns on, so that a block here is a block of the site.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from docutils.parsers.rst.directives.misc import TestDirective as AnyOptions  # it takes every option
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath.index import math_block_dollar
from mdit_py_plugins.myst_blocks import myst_block_plugin
from myst_parser.parsers.directives import parse_directive_text

_COMMENT = re.compile(r"<!--.*?(-->|\Z)", flags=re.S)


@dataclass(frozen=True)
class Text:
    """Ordinary Markdown."""

    source: str


@dataclass(frozen=True)
class Code:
    """A fenced block of code, fences included."""

    source: str


@dataclass(frozen=True)
class Math:
    """Display math between double dollars, with the label that may follow them."""

    body: str
    label: str = ""


@dataclass(frozen=True)
class Target:
    """``(label)=`` on a line of its own."""

    label: str


@dataclass(frozen=True)
class Directive:
    """A directive with its argument, its options and its unparsed body."""

    name: str
    argument: str = ""
    options: dict[str, str] = field(default_factory=dict)
    body: str = ""

    @property
    def label(self) -> str:
        """The name under which the rest of the book refers to it."""
        return self.options.get("label") or self.options.get("name") or ""


Block = Text | Code | Math | Target | Directive


def parse(source: str) -> list[Block]:
    """Return the blocks of a piece of MyST Markdown, in order; comments are left out."""
    source = source.replace("\r\n", "\n").replace("\r", "\n") + "\n"
    return list(_blocks(source.split("\n"), _MARKDOWN.parse(source)))


def _blocks(lines: list[str], tokens: list[Token]) -> Iterator[Block]:
    """Yield the blocks that tokens stand for, however deep in lists and quotes, and the lines between them as text."""
    text: list[str] = []
    position = 0
    for token in tokens:
        block = _block(token, lines)
        if block and token.map:
            text += lines[position : token.map[0]]
            position = token.map[1]
            if isinstance(block, Text):
                text += [block.source] if block.source.strip() else []
                continue
            yield from _text(text)
            yield block
            text = []
    yield from _text(text + lines[position:])


def _text(lines: list[str]) -> list[Text]:
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    return [Text(text)] if text.strip() else []


def _block(token: Token, lines: list[str]) -> Block | None:
    """Return the block of a token, a comment as the text after it; None where the lines stay as they are."""
    if token.type in ("fence", "colon_fence"):
        return _fenced(token, lines)
    if token.type in ("math_block", "math_block_label"):
        return Math(token.content.strip(), token.info)
    if token.type == "myst_target":
        return Target(token.content)
    if token.type == "html_block" and token.content.lstrip().startswith("<!--"):
        return Text(_COMMENT.sub("", token.content))
    return Text("") if token.type in ("myst_line_comment", "myst_block_break") else None


def _fenced(token: Token, lines: list[str]) -> Block:
    start, end = token.map or (0, 0)
    name, *argument = token.info.split(maxsplit=1) or [""]
    if name.startswith("{") and name.endswith("}"):
        nested = token.type == "colon_fence" and token.content.startswith(":::")  # and no option, though it has colons
        options, body = _options("\n" * nested + token.content)
        return Directive(name[1:-1], "".join(argument).strip(), options, body.strip("\n"))
    if token.type == "colon_fence":
        return Directive("div", token.info.strip(), {}, token.content)
    closed = end - start == token.content.count("\n") + 2
    return Code("\n".join([*lines[start:end], *[token.markup] * (not closed)]))


def _options(content: str) -> tuple[dict[str, str], str]:
    """Split the options, in either of their two spellings, from the body."""
    try:
        parsed = parse_directive_text(AnyOptions, "", content)
        "".join(parsed.options.values()).encode()
    except (ValueError, OverflowError):  # an escape for what is no character: Sphinx reports it with its line
        return {}, content
    return parsed.options, "\n".join(parsed.body)


def _display_math(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The plugin's rule, which may also end a paragraph: the site gives such math a line of its own too."""
    begins = state.src.startswith("$$", state.bMarks[start] + state.tShift[start])
    return begins and (silent or _DOLLARS(state, start, end, silent))


_DOLLARS = math_block_dollar(allow_blank_lines=True)
_MARKDOWN = MarkdownIt("commonmark").enable("table").disable("inline").use(myst_block_plugin).use(colon_fence_plugin)
_MARKDOWN.block.ruler.before("fence", "math_block", _display_math, {"alt": ["paragraph", "blockquote", "list"]})
