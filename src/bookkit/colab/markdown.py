"""Turn MyST Markdown into the Markdown that Jupyter and Colab show: no directives, no roles, the same words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from bookkit.colab.citations import Citation
from bookkit.colab.labels import NUMBERED, Labels, Numbering
from bookkit.colab.myst import Block, Code, Directive, Math, Target, Text, parse

_ADMONITIONS = {"note", "tip", "hint", "important", "warning", "caution", "danger", "error", "attention", "seealso"}
_TITLED = {"admonition", "topic", "sidebar", "margin"}
_CODE = {"code", "code-block", "code-cell", "sourcecode"}
_DROPPED = {"toctree", "tableofcontents", "contents", "index", "eval-rst", "only", "exercise-end", "solution-end"}
# One pass over running text: what must stay as it is comes first, so that nothing inside it is taken for markup.
_INLINE = re.compile(
    r"(?:\{(?P<role>[\w:.+-]+)\})?(?P<ticks>`+)(?P<body>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|(?P<math>(?<!\\)\$(?:\\.|[^$\\])+\$)"
    r"|(?P<comment><!--.*?-->)"
    r"|(?P<image>!\[(?P<alt>[^\]]*)\]\((?P<picture>[^)\s]+)[^)]*\)(?:\{[^}\n]*\})?)"
    r"|\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<to>[^)\s]+)(?:\s+\"[^\"]*\")?\)"
    r"|<(?:project|path|inv):(?P<auto>[^>\s]+)>",
    flags=re.S,
)
_EXTERNAL = re.compile(r"^(https?:|mailto:|data:|attachment:)")
_WITH_TEXT = re.compile(r"^(?P<text>.+?)\s*<(?P<label>[^<>]+)>$", flags=re.S)
_LEFTOVER = re.compile(r"^[ >]*(?:`{3,}|~{3,}|:{3,}) *\{[\w:.+-]+\}.*$|^[ >]*:{3,}|\{[\w:.+-]+\}`[^`]", flags=re.M)


@dataclass
class Plain:
    """Converts the Markdown cells of one chapter, in order: numbers go up as in the book."""

    chapter: int
    labels: Labels = field(default_factory=Labels)
    citations: Mapping[str, Citation] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbering = Numbering(self.chapter)
        self._cited: dict[str, Citation] = {}

    def convert(self, source: str) -> str:
        """Return one cell as plain Markdown; an empty string when nothing of it is for a reader."""
        pieces = [self._block(block) for block in parse(source)]
        return "\n\n".join(piece.strip("\n") for piece in pieces if piece.strip())

    def _block(self, block: Block) -> str:
        if isinstance(block, Text):
            return self._inline(block.source)
        if isinstance(block, Code):
            return block.source
        if isinstance(block, Math):
            return _display(block.body, self._numbering.name(block))
        if isinstance(block, Target):
            return ""
        return self._directive(block)

    def _directive(self, block: Directive) -> str:
        name, argument = block.name, self._inline(block.argument)
        number = self._numbering.name(block)
        if name == "math":
            return _display("\n".join(filter(None, [block.argument, block.body])), number)
        if name in _CODE:
            return f"```{block.argument}\n{block.body}\n```"
        if name in _DROPPED or name.startswith("glue:"):
            return ""
        if name == "bibliography":
            return "\n".join(f"- {work.reference}" for work in self._cited.values())
        if name == "raw":
            return block.body if block.argument == "html" else ""
        if name in ("figure", "image"):
            caption = self.convert(block.body) or block.options.get("alt", "")
            return f"*{number or 'Figure'}: {caption}*" if caption else ""
        if name.startswith("solution"):
            title = self._inline(self.labels.solution(block.argument))
            return f"**{title}**" if name == "solution-start" else _folded(title, self.convert(block.body))
        if name == "dropdown" or "dropdown" in block.options.get("class", "").split():
            title = f"{number} ({argument})" if number and argument else number or argument
            return _folded(title or name.rpartition(":")[2].capitalize(), self.convert(block.body))
        if name == "prf:proof":
            body = self.convert(block.body)
            return _quoted("*Proof.*", body + ("\n\n∎" if body.endswith(("$$", "```", "|")) else " ∎"))
        if name in NUMBERED and name not in ("table", "list-table"):
            head = f"**{number}**" + (f" ({argument})" if argument else "")
            return head if name == "exercise-start" else _quoted(f"{head}.", self.convert(block.body))
        if name in _ADMONITIONS:
            return _quoted(f"**{name.capitalize()}.**", "\n\n".join(filter(None, [argument, self.convert(block.body)])))
        if name in _TITLED:
            return _quoted(f"**{argument or name.capitalize()}**", self.convert(block.body), own_line=True)
        body = _list_table(block.body) if name == "list-table" else block.body
        title = f"{number}: {argument}" if number and argument else argument or number
        return "\n\n".join(filter(None, [f"**{title}**" if title else "", self.convert(body)]))

    def _inline(self, source: str) -> str:
        return _INLINE.sub(self._span, source)

    def _span(self, found: re.Match[str]) -> str:
        if found["role"]:
            return self._role(found["role"], found["body"].strip())
        if found["comment"]:
            return ""
        if found["picture"] and not _EXTERNAL.match(found["picture"]):
            return f"*(picture: {found['alt']})*" if found["alt"] else ""
        to = found["to"] or found["auto"]
        if to and not _EXTERNAL.match(to):
            return self._inline(found["text"] or "") or self.labels.of(to.partition("#")[2] or PurePosixPath(to).stem)
        return found[0]

    def _role(self, role: str, body: str) -> str:
        text_and_label = _WITH_TEXT.match(body)
        text, label = (text_and_label["text"], text_and_label["label"]) if text_and_label else ("", body)
        if role == "math":
            return f"${body}$"
        if role.startswith("cite"):
            return self._cite(role, [key.strip() for key in body.split(",")])
        if role.startswith("glue:"):
            return self._value(body)
        if role == "numref":
            name = self.labels.of(label, numbered=True)
            number = name.rpartition(" ")[2]
            return text.replace("%s", number).replace("{number}", number) or name
        if role == "doc":
            return self._inline(text) or self.labels.of(PurePosixPath(label).stem)
        if role in ("eq", "ref", "prf:ref", "any"):
            return self._inline(text) or self.labels.of(label)
        if role in ("sub", "sup", "kbd"):
            return f"<{role}>{body}</{role}>"
        if role.startswith("py:") or role in ("func", "class", "mod", "meth", "attr", "data", "exc", "code", "file"):
            return f"`{text or (label.rpartition('.')[2] if label.startswith('~') else label)}`"
        return text or label

    def _cite(self, role: str, keys: list[str]) -> str:
        works = {key: self.citations.get(key) or Citation(key, "", key) for key in keys}
        self._cited |= works
        if ":t" in role:
            return ", ".join(f"{w.authors} ({w.year})" if w.year else w.authors for w in works.values())
        return "(" + "; ".join(", ".join(filter(None, [w.authors, w.year])) for w in works.values()) + ")"

    def _value(self, body: str) -> str:
        """A glued value, with the format that may follow its name: ``{glue:text}`error:.2e```."""
        name, _, form = (body, "", "") if body in self.values else body.rpartition(":")
        value = self.values.get(name or body, f"(see the output named {name or body})")
        try:
            return format(float(value), form) if form else value
        except ValueError:
            return value


def leftovers(source: str) -> list[str]:
    """Return what is left of MyST in a piece of Markdown, outside code; an empty list when it is plain."""
    text = "\n".join(block.source for block in parse(source) if isinstance(block, Text))
    found = [match[0].strip() for match in _LEFTOVER.finditer(re.sub(r"(?<!\})(`+)[^`].*?\1", "", text))]
    for block in parse(source):
        found += [f"{{{block.name}}}"] if isinstance(block, Directive) else []
        found += [f"({block.label})="] if isinstance(block, Target) else []
    return found


def _display(body: str, number: str) -> str:
    """Display math; Sphinx splits lines at a double backslash by itself, here it takes an environment."""
    if "\\\\" in body and "\\begin" not in body:
        body = f"\\begin{{split}}\n{body}\n\\end{{split}}"
    tag = f"\n\\tag{{{number.strip('()')}}}" if number else ""
    return f"$$\n{body}{tag}\n$$"


def _quoted(head: str, body: str, own_line: bool = False) -> str:
    """A block quote. Display math goes on one line there: Jupyter takes ``>`` at a line start into the formula."""
    body = re.sub(r"^\$\$\n(.*?)\n\$\$$", lambda found: f"$$ {' '.join(found[1].split())} $$", body, flags=re.M | re.S)
    joined = f"{head}\n\n{body}" if own_line or body.startswith(("$$", "```", "- ", "|", ">")) else f"{head} {body}"
    return "\n".join(f"> {line}".rstrip() for line in joined.strip().splitlines())


def _folded(title: str, body: str) -> str:
    return f"<details>\n<summary>{title}</summary>\n\n{body}\n\n</details>"


def _list_table(body: str) -> str:
    """A table written as nested lists, as a table with pipes; its first row becomes the head."""
    rows = [re.split(r"^ *- ", row, flags=re.M)[1:] for row in re.split(r"^\* (?=- )", body, flags=re.M)[1:]]
    cells = [["\\|".join(" ".join(cell.split()).split("|")) for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([*lines[:1], "|---" * len(cells[0]) + "|", *lines[1:]]) if cells else ""
