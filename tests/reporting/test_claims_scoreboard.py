"""The scoreboard, read alone by someone who has seen nothing else."""

import pytest

from manyheads.reporting import claims
from manyheads.reporting.claims.verdicts import MARKS, MEANINGS
from manyheads.reporting.statistics import Mean

IDS = list(claims.ledger())


def cards(*ids):
    """Cards as the build collects them."""
    return [claims.judge(id, estimate=0).to_json() | {"page": "01_heads.html"} for id in ids]


I4 = claims.judge(
    "I4",
    conditions={
        "maximum": Mean(0.01, 0.008, 0.012, 6, 0.99),
        "second": Mean(20, 15, 25, 6, 0.99),
        "third": Mean(1.1, 0.9, 1.3, 6, 0.99),
        "fourth": Mean(0.8, 0.7, 0.9, 6, 0.99),
        "length": Mean(3, 2, 4, 6, 0.99),
    },
    evidence="one layer, $n = 8$, E < T * d_head",
    recorded="2026-11-30",
)


def row_of(id, page):
    (row,) = (line for line in page.splitlines() if line.startswith(f'| <span id="claim-{id.lower()}"></span>{id} |'))
    return row


def test_a_book_with_each_claim_judged_once_has_no_problem():
    assert claims.check(cards("P1", "P2"), {1}) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (cards("P1"), "P2 belongs to chapter 1 and has no verdict"),
        (cards("P1", "P2", "P2"), "P2 is judged 2 times"),
        ([*cards("P1", "P2"), {"id": "Q9"}], "unknown claim id 'Q9'"),
        ([*cards("P1"), {**cards("P2")[0], "found_in": 7}], "P2 belongs to chapter 1, judged in chapter 7"),
    ],
)
def test_a_planted_fault_is_found(found, words):
    assert any(words in problem for problem in claims.check(found, {1}))


def test_it_lists_judged_and_coming_claims_and_is_deterministic():
    page = claims.scoreboard(cards("P1", "P2"), {1})
    assert page == claims.scoreboard(cards("P2", "P1"), {1})
    judged, coming = page.split("## Still to come")
    assert "P1 |" in judged
    assert "P3 |" not in judged
    assert "P3 |" in coming


def test_every_row_has_an_anchor_and_every_verdict_links_to_its_card():
    page = claims.scoreboard(cards("P1"), {1})
    rows = {id: row_of(id, page) for id in IDS}
    assert '**<a href="01_heads.html#verdict-p1">✔✔ exact</a>**: 0 (chapter 1)' in rows["P1"]
    assert "not judged (chapter 1)" in rows["P2"]


def test_every_word_is_explained_and_counted_at_the_top():
    top = claims.scoreboard([*cards("P1", "P2"), I4.to_json() | {"page": "02.html"}], {1, 2}).split("## Judged")[0]
    counts = {"exact": 2, "partly": 1}
    for word, mark in MARKS.items():
        assert f"| {mark} {word} | {MEANINGS[word]} | {counts.get(word, 0)} |" in top
    assert f"3 of {len(IDS)} claims are judged" in top


def test_a_row_says_what_was_measured_on_what_with_how_many_seeds_and_what_would_fail_it():
    row = row_of("I4", claims.scoreboard([I4.to_json() | {"page": "02.html"}], {2}))
    assert '**<a href="02.html#verdict-i4">◐ partly</a>**: 3 of 5 conditions met, 6 seeds (chapter 2)' in row
    for name, condition in claims.ledger()["I4"].rule.conditions.items():
        assert f"**{name}**: {condition.text}; must be " in row
    for outcome in ("maximum **met**: 0.01 [0.008, 0.012]", "third **open**: 1.1", "fourth **failed**: 0.8"):
        assert outcome in row
    assert "not reproduced here when each of them fails" in row
    assert r"one layer, $n = 8$, E \< T \* d\_head" in row


def test_history_and_controls_are_folded_into_the_row():
    row = row_of("I4", claims.scoreboard([], {2}))
    folded = row.split("<details><summary>Rule of 2026-12-01; 3 earlier versions</summary>")[1].split("</details>")[0]
    assert folded.count("Rule of 2026-11-30: ") == 3
    assert "a constant predictor scores 1" in folded
    assert "a predictor that knows nothing (constant) would measure maximum 1, second 1" in folded


def test_a_rule_younger_than_its_recording_is_named():
    page = claims.scoreboard([I4.to_json() | {"page": "02.html"}], {2})
    assert "when the data were made: I4." in page
    assert "**rule changed after the recording**" in row_of("I4", page)
    assert "when the data were made: none." in claims.scoreboard(cards("P1"), {1})
