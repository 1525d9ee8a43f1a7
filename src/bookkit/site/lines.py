"""What the site says about the chapters: the line under a title, and the table of the landing page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from bookkit.notebooks.facts import Facts
from bookkit.notebooks.toc import Chapter

FACTS_MARKER = "<!-- facts -->"
TABLE_MARKER = "<!-- chapter-table -->"
NEEDS = "a laptop"  # what the quick profile is held to; a chapter that needs more says so in metadata.bookkit.needs


def chapter_line(chapter: Chapter, facts: Facts | None, colab_base: str | None) -> str:
    """Return the line under a chapter's title: its facts, and how to get it into Colab."""
    parts = []
    if facts:
        torch = f", torch {facts.torch}" if facts.torch else ""
        parts.append(
            f"Last executed {facts.executed} in {facts.took} on {escape(facts.device)} "
            f"({facts.profile} profile{torch}, Python {facts.python})."
        )
    if colab_base:
        parts.append(f'<a href="{escape(colab_base)}{chapter.stem}.ipynb">Open in Colab</a> ·')
    parts.append(f'<a href="../colab/{chapter.stem}.ipynb" download>Download the Colab copy</a>')
    return " ".join(parts)


def chapter_table(rows: Iterable[tuple[Chapter, Facts | None, str]]) -> str:
    """Return the table of the landing page from (chapter, its facts, what it needs)."""
    lines = ["| Chapter | Needs | Time | Executed on | Last executed |", "|---|---|---|---|---|"]
    for chapter, facts, needs in rows:
        measured = [facts.took, facts.device, facts.executed] if facts else ["—"] * 3
        link = f"[{chapter.number}. {chapter.title}]({chapter.path.name})"
        lines.append("| " + " | ".join([link, needs, *measured]) + " |")
    return "\n".join(lines)


def needs(metadata: Mapping[str, Any]) -> str:
    """Return what a chapter's quick profile needs, from ``metadata.bookkit.needs`` of its notebook."""
    return str((metadata.get("bookkit") or {}).get("needs", NEEDS))
