"""Read MyST Markdown into blocks: text, code, display math, targets and directives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,}|:{3,})[ \t]*(?P<info>.*?)[ \t]*$")
_DIRECTIVE = re.compile(r"^\{(?P<name>[\w:.+-]+)\}[ \t]*(?P<argument>.*)$")
_TARGET = re.compile(r"^\((?P<label>[^\s()]+)\)=\s*$")
_OPTION = re.compile(r"^:(?P<key>[\w-]+):[ \t]*(?P<value>.*)$")
_MATH_END = re.compile(r"\$\$[ \t]*(?:\((?P<label>[^\s()]+)\))?[ \t]*$")


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
    return list(_blocks(source.splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    text: list[str] = []
    position = 0

    def flush() -> Iterator[Text]:
        if any(line.strip() for line in text):
            yield Text(re.sub(r"\n{3,}", "\n\n", "\n".join(text)).strip("\n"))
        text.clear()

    while position < len(lines):
        line = lines[position]
        fence, target = _FENCE.match(line), _TARGET.match(line)
        if fence and (fence["mark"][0] != "`" or "`" not in fence["info"]):
            end = _end_of_fence(lines, position, fence["mark"])
            yield from flush()
            yield _fenced(lines[position : end + 1], fence, closed=end < len(lines))
            position = end
        elif line.lstrip().startswith("$$"):
            end = _end_of_math(lines, position)
            yield from flush()
            yield _math(lines[position : end + 1])
            position = end
        elif line.lstrip().startswith("<!--"):
            while "-->" not in lines[position] and position + 1 < len(lines):
                position += 1
            rest = lines[position].partition("-->")[2]
            text += [rest] if rest.strip() else []
        elif target:
            yield from flush()
            yield Target(target["label"])
        elif not (line.startswith("%") or re.match(r"^\+\+\+(\s|$)", line)):  # comment, block break
            text.append(line)
        position += 1
    yield from flush()


def _end_of_fence(lines: list[str], start: int, mark: str) -> int:
    """Index of the closing fence; the number of lines when it is missing, as Markdown closes it at the end.

    Only a fence of at least the same length closes. Colon fences of one length may nest; an inner opening one carries
    a directive. Code inside a colon fence may show fences of its own, which do not count.
    """
    closing = re.compile(rf"^ *{re.escape(mark[0])}{{{len(mark)},}} *$")
    depth, position = 0, start + 1
    while position < len(lines):
        inner = _FENCE.match(lines[position])
        if closing.match(lines[position]):
            if depth == 0:
                return position
            depth -= 1
        elif mark[0] == ":" and inner:
            if inner["mark"][0] != ":":
                position = min(_end_of_fence(lines, position, inner["mark"]), len(lines) - 1)
            elif len(inner["mark"]) >= len(mark) and _DIRECTIVE.match(inner["info"]):
                depth += 1
        position += 1
    return len(lines)


def _fenced(lines: list[str], fence: re.Match[str], closed: bool) -> Block:
    indent = len(fence["indent"])
    inside = [line[indent:] if not line[:indent].strip() else line for line in lines[1 : -1 if closed else None]]
    directive = _DIRECTIVE.match(fence["info"])
    if directive:
        options, body = _options(inside)
        return Directive(directive["name"], directive["argument"].strip(), options, "\n".join(body).strip("\n"))
    if fence["mark"][0] == ":":
        return Directive("div", fence["info"], {}, "\n".join(inside))
    return Code("\n".join(lines if closed else [*lines, fence["mark"]]))


def _options(lines: list[str]) -> tuple[dict[str, str], list[str]]:
    """Split the options, in either of their two spellings, from the body."""
    if lines and lines[0].strip() == "---":
        end = next((i for i, line in enumerate(lines[1:], start=1) if line.strip() == "---"), len(lines))
        return _yaml_options("\n".join(lines[1:end])), lines[end + 1 :]
    options = {}
    for position, line in enumerate(lines):
        option = _OPTION.match(line.strip())
        if not option:
            return options, lines[position:]
        options[option["key"]] = option["value"]
    return options, []


def _yaml_options(source: str) -> dict[str, str]:
    """Options written as YAML; none when it is not that, for Sphinx reports it with its line."""
    try:
        return {str(key): str(value) for key, value in yaml.safe_load(source).items()}
    except (yaml.YAMLError, ValueError, AttributeError, RecursionError):
        return {}


def _end_of_math(lines: list[str], start: int) -> int:
    if _MATH_END.search(lines[start].strip()[2:]):
        return start
    return next((i for i in range(start + 1, len(lines)) if _MATH_END.search(lines[i])), len(lines) - 1)


def _math(lines: list[str]) -> Math:
    source = "\n".join(lines).strip().removeprefix("$$")
    end = _MATH_END.search(source)
    return Math(source[: end.start()].strip() if end else source.strip(), (end and end["label"]) or "")
