"""The cards of the whole book: are they complete, and what do they say together?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from manyheads.names import unknown
from manyheads.reporting.claims.cards import anchor, condition_in_words, rule_notes, summary
from manyheads.reporting.claims.ledger import Claim, ledger
from manyheads.reporting.claims.verdicts import MARKS, MEANINGS


def check(verdicts: Iterable[Mapping[str, Any]], chapters: Iterable[int]) -> list[str]:
    """Return what is wrong with the cards found in the book; an empty list when all is well.

    Every claim whose chapter is in ``chapters`` must have exactly one card, in its own chapter.
    """
    chapters, verdicts, claims = set(chapters), list(verdicts), ledger()
    counts = Counter(v["id"] for v in verdicts)
    problems = [unknown("claim id", id, claims) for id in counts if id not in claims]
    for id, claim in claims.items():
        if counts[id] > 1:
            problems.append(f"{id} is judged {counts[id]} times; keep one card")
        if claim.chapter in chapters and not counts[id]:
            problems.append(f"{id} belongs to chapter {claim.chapter} and has no verdict card there: {claim.measure}")
    for v in verdicts:
        if v["id"] in claims and v.get("found_in", claims[v["id"]].chapter) != claims[v["id"]].chapter:
            problems.append(
                f"{v['id']} belongs to chapter {claims[v['id']].chapter}, judged in chapter {v['found_in']}"
            )
    return problems


def scoreboard(verdicts: Iterable[Mapping[str, Any]], chapters: Iterable[int]) -> str:
    """Return the scoreboard page as Markdown: what is judged so far, and what is still to come.

    Each row has an anchor, ``claim-i7`` for the claim I7, and each verdict links to its card.

    Parameters
    ----------
    verdicts
        The JSON of the cards found in the executed chapters, one mapping a card, with the ``page`` each is on: its
        address as seen from the scoreboard.
    chapters
        Numbers of the chapters that are in the book.
    """
    chapters, found = set(chapters), {v["id"]: v for v in verdicts}
    tally = Counter(v["verdict"] for v in found.values())
    claims = ledger().values()
    lines = [
        "# Scoreboard",
        "",
        "Which claims of the papers did we check, and what came out? This page is generated from the verdict cards of",
        "the executed chapters. A rule, fixed beside the claim, turns what was measured into a verdict; nobody types",
        f"one in. {len(found)} of {len(claims)} claims are judged so far.",
        "",
        "A verdict is about what we measured, on the tasks and at the sizes that its row names, and nothing else.",
        "Each row says what would have come out otherwise; its folded part says what fixes the lines, what predictors",
        "that know nothing would measure, and every earlier version of the rule with the verdict it gives.",
        f"Rules that asked for something else when the data were made: {_younger(found)}.",
        "",
        *_table(("Verdict", "Meaning", "Claims"), _tally(tally)),
    ]
    judged = [c for c in claims if c.chapter in chapters]
    coming = [c for c in claims if c.chapter not in chapters]
    columns = ("Id", "Claim", "What is measured, and the rule")
    if judged:
        rows = [[*_row(c), _verdict(c, found.get(c.id))] for c in judged]
        lines += ["## Judged", "", *_table((*columns, "Verdict"), rows)]
    if coming:
        rows = [[*_row(c), str(c.chapter)] for c in coming]
        lines += ["## Still to come", "", *_table((*columns, "Chapter"), rows)]
    return "\n".join(lines)


def _tally(tally: Mapping[str, int]) -> list[list[str]]:
    return [[f"{MARKS[word]} {word}", meaning, str(tally[word])] for word, meaning in MEANINGS.items()]


def _younger(found: Mapping[str, Mapping[str, Any]]) -> str:
    return ", ".join(id for id in ledger() if found.get(id, {}).get("note")) or "none"


def _row(c: Claim) -> list[str]:
    conditions = "".join(
        f"<br>**{name}**: {_plain(line.text)}; {condition_in_words(c.rule, name)}"
        for name, line in c.rule.conditions.items()
    )
    notes = "<br>".join(map(_plain, rule_notes(c.rule)))
    folded = f"<details><summary>{summary(c.rule)}</summary>{notes}</details>" if notes else f"<br>{summary(c.rule)}"
    return [
        f'<span id="claim-{c.id.lower()}"></span>{c.id}',
        f"{_plain(c.statement)} *{_plain(c.source)}: {_plain(c.reported)}.*",
        f"{_plain(c.measure)}{conditions}<br>*{_plain(c.rule.in_words())}*{folded}",
    ]


def _verdict(c: Claim, v: Mapping[str, Any] | None) -> str:
    if v is None:
        return f"not judged (chapter {c.chapter})"
    # Raw HTML: the target is made by the chapter's output, where Sphinx does not look for anchors.
    link = f'<a href="{v["page"]}#{anchor(c.id)}">{MARKS[v["verdict"]]} {v["verdict"]}</a>'
    lines = [f"**{link}**: {_plain(v['measured'])} (chapter {c.chapter})"]
    lines += [f"{each['name']} **{each['outcome']}**: {each['measured']}" for each in v["conditions"]]
    lines += [_plain(v["evidence"])] if v["evidence"] else []
    lines += [f"**{v['note']}**"] if v["note"] else []
    return "<br>".join(lines)


def _plain(text: str) -> str:
    """Keep Markdown from reading anything but formulas into a text."""
    pieces = re.split(r"(\$[^$]+\$)", text)
    pieces[::2] = (re.sub(r"([\\`*_\[\]<&])", r"\\\1", piece) for piece in pieces[::2])
    return "".join(pieces)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(head)
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in escaped), ""]
