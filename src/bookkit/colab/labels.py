"""What the labels of the book are called: theorem, equation, exercise and figure numbers, as the site shows them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bookkit.colab.myst import Block, Directive, Math, Target, Text, parse

_THEOREMS = (
    *("theorem", "lemma", "corollary", "proposition", "definition", "axiom", "assumption", "algorithm"),
    *("conjecture", "criterion", "example", "observation", "property", "remark"),
)
# directive: what a reader sees before its number
NUMBERED = {
    **{f"prf:{kind}": kind.capitalize() for kind in _THEOREMS},
    "exercise": "Exercise",
    "exercise-start": "Exercise",
    "figure": "Fig.",
    "table": "Table",
    "list-table": "Table",
    "math": "",
}
_ALWAYS = ("prf:", "exercise")  # numbered without a label too; figures and tables with a caption or one


@dataclass
class Labels:
    """The names of all labels of a book, and the numbers of blocks in the order in which a chapter has them."""

    names: dict[str, str] = field(default_factory=dict)
    captions: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)  # of exercises

    @classmethod
    def collect(cls, chapters: Mapping[int, Iterable[str]]) -> Labels:
        """Read the Markdown cells of every chapter, by chapter number, so that chapters can refer to one another."""
        labels = cls()
        for number, sources in chapters.items():
            labels._read(sources, Numbering(number))
        return labels

    def of(self, label: str, numbered: bool = False) -> str:
        """Return what a reference to ``label`` reads as; an unknown label reads as its own words.

        Figures and tables read as their caption, and as their number where it is asked for with ``numref``.
        """
        caption = "" if numbered else self.captions.get(label)
        return caption or self.names.get(label) or re.sub(r"^[a-z]+[-:]", "", label).replace("-", " ").replace("_", " ")

    def solution(self, exercise: str) -> str:
        """Return what the solution of an exercise is called: by the number and the title of the exercise."""
        title = self.titles.get(exercise)
        return f"Solution to {self.of(exercise)}" + (f" ({title})" if title else "")

    def _read(self, sources: Iterable[str], numbering: Numbering) -> None:
        pending: list[str] = []
        solutions: list[tuple[str, str]] = []
        for block in walk(block for source in sources for block in parse(source)):
            name = numbering.name(block)
            if isinstance(block, Target):
                pending.append(block.label)
                continue
            if isinstance(block, Text):
                heading = re.match(r"#+ +(.+?) *#*(\n|$)", block.source)
                name = heading[1] if heading else ""
            own = block.label if isinstance(block, Math | Directive) else ""
            for label in [*pending, own]:
                if label and name:
                    self.names[label] = name
                    self.captions[label] = _caption(block)
            pending.clear()
            if isinstance(block, Directive) and block.name.startswith("exercise"):
                self.titles[block.label] = block.argument
            if isinstance(block, Directive) and block.name.startswith("solution") and block.label:
                solutions.append((block.label, block.argument))
        for label, exercise in solutions:
            self.names[label] = self.solution(exercise)


class Numbering:
    """Counts the numbered blocks of one chapter, each kind on its own: Theorem 2.1, Lemma 2.1, (2.1)."""

    def __init__(self, chapter: int):
        self.chapter = chapter
        self.counts: Counter[str] = Counter()

    def name(self, block: Block) -> str:
        """Return the name of the next block of the chapter, or nothing when it is not one that gets a number."""
        if isinstance(block, Math):
            block = Directive("math", options={"label": block.label} if block.label else {})
        if not isinstance(block, Directive) or block.name not in NUMBERED:
            return ""
        kind = NUMBERED[block.name]
        if not (block.label or _caption(block) or block.name.startswith(_ALWAYS)):
            return ""
        if "nonumber" in block.options:
            return kind
        self.counts[kind] += 1
        number = f"{self.chapter}.{self.counts[kind]}"
        return f"{kind} {number}" if kind else f"({number})"


def _caption(block: Block) -> str:
    """Return the caption of a figure or a table; nothing for other blocks."""
    if isinstance(block, Directive) and block.name == "figure":
        return block.body.partition("\n\n")[0]
    return block.argument if isinstance(block, Directive) and block.name in ("table", "list-table") else ""


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks and, after each directive, the blocks inside it."""
    for block in blocks:
        yield block
        if isinstance(block, Directive) and block.name not in VERBATIM:
            yield from walk(parse(block.body))


# directives whose body is not Markdown
VERBATIM = {"math", "code", "code-block", "code-cell", "sourcecode", "eval-rst", "raw", "toctree", "bibliography"}
