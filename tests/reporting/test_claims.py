import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.reporting import claims
from manyheads.reporting.claims import EXACT, HOLDS, MORE_COMPUTE, NOT_HERE, PARTLY, Rule

IDS = (
    [f"I{i}" for i in range(1, 10)]
    + [f"A{i}" for i in range(1, 6)]
    + [f"M{i}" for i in range(1, 15)]
    + [f"P{i}" for i in range(1, 7)]
    + [f"X{i}" for i in range(1, 9)]
)


def test_the_ledger_lists_every_claim_of_the_five_sources():
    assert list(claims.ledger()) == IDS


def test_every_rule_can_be_put_into_words_and_every_chapter_is_planned():
    for claim in claims.ledger().values():
        assert claim.rule.in_words()
        assert 1 <= claim.chapter <= 8
        assert claim.statement.endswith(".")


@pytest.mark.parametrize(
    ("rule", "estimate", "interval", "seeds", "verdict"),
    [
        (Rule("exact", tolerance=0.0), 0.0, None, None, EXACT),
        (Rule("exact", tolerance=0.0), 5e-324, None, None, NOT_HERE),
        (Rule("exact", tolerance=1e-9), 1e-9, None, None, EXACT),
        (Rule("share"), 1.0, None, None, HOLDS),
        (Rule("share"), 0.5, None, None, PARTLY),
        (Rule("share"), 0.0, None, None, NOT_HERE),
        (Rule("region", low=0.0, min_seeds=5), 1.0, (0.5, 1.5), 5, HOLDS),
        (Rule("region", low=0.0, min_seeds=5), 1.0, (0.5, 1.5), 4, MORE_COMPUTE),
        (Rule("region", low=0.0, min_seeds=5), 0.1, (-0.1, 0.3), 5, PARTLY),
        (Rule("region", low=0.0, min_seeds=5), -0.2, (-0.3, -0.1), 5, NOT_HERE),
        (Rule("region", low=-1.0, high=1.0), 0.0, (-1.0, 1.0), None, HOLDS),
        (Rule("region", high=1.0), 1.0, None, None, HOLDS),
        (Rule("region", high=1.0), 1.01, None, None, NOT_HERE),
        (Rule("region", low=0.0, illustrates=True), 1.0, (0.5, 1.5), None, PARTLY),
        (Rule("region", low=0.0, illustrates=True), -1.0, (-1.5, -0.5), None, NOT_HERE),
        (Rule("region", low=0.0, min_seeds=5, illustrates=True), 1.0, (0.5, 1.5), 4, MORE_COMPUTE),
        (Rule("share", illustrates=True), 1.0, None, None, PARTLY),
        (Rule("region", low=0.0, min_seeds=3, needs="cuda"), 1.0, (0.5, 1.5), 9, MORE_COMPUTE),
    ],
)
def test_a_rule_gives_its_verdict_at_the_edge(rule, estimate, interval, seeds, verdict):
    assert rule.verdict(estimate, interval or (estimate, estimate), seeds, "cpu") == verdict


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-5, 5), st.floats(0, 5))
def test_an_interval_inside_holds_and_one_outside_does_not(centre, half, low, width):
    verdict = Rule("region", low=low, high=low + width).verdict(centre, (centre - half, centre + half), None, "cpu")
    inside = low <= centre - half and centre + half <= low + width
    assert (verdict == HOLDS) == inside
    if centre + half <= low or centre - half >= low + width:
        assert verdict in (NOT_HERE, HOLDS if inside else NOT_HERE)


def test_the_verdict_cannot_be_passed_by_an_author():
    with pytest.raises(TypeError):
        claims.judge("P1", estimate=0, verdict="exact")


def test_judging_shows_a_card_that_the_build_can_read():
    verdict = claims.judge("P1", estimate=0, evidence="three sizes")
    bundle = verdict._repr_mimebundle_()
    assert bundle["text/plain"] == "P1: exact (0)"
    assert bundle[claims.MIME] == verdict.to_json()
    assert bundle[claims.MIME]["verdict"] == EXACT
    assert "three sizes" in bundle["text/html"]


def test_text_on_a_card_is_escaped():
    assert "<b>" not in claims.judge("P1", estimate=0, evidence="<b>")._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "P11", "estimate": 0}, "unknown claim id 'P11'; did you mean 'P1'"),
        ({"id": "P1", "estimate": math.nan}, "not a finite number"),
        ({"id": "P1", "estimate": -1}, "cannot be negative"),
        ({"id": "A3", "estimate": 1.5}, "between 0 and 1"),
        ({"id": "A1", "estimate": 0.3}, "95% interval"),
        ({"id": "A1", "estimate": 0.3, "interval": (0.4, 0.5)}, "around estimate"),
        ({"id": "A1", "estimate": 0.3, "interval": (0.2, 0.3, 0.4)}, "around estimate"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        claims.judge(**arguments)


def cards(*ids):
    return [claims.Verdict(claims.ledger()[id], EXACT, 0.0).to_json() for id in ids]


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


def test_the_scoreboard_lists_judged_and_coming_claims_and_is_deterministic():
    page = claims.scoreboard(cards("P1", "P2"), {1})
    assert page == claims.scoreboard(cards("P2", "P1"), {1})
    judged, coming = page.split("## Still to come")
    assert "| P1 |" in judged
    assert "| P3 |" not in judged
    assert "| P3 |" in coming
    assert all(f"| {id} |" in page for id in IDS)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "exact", tolerance = 0.0', 'kind = "exactly"', "unknown rule kind 'exactly'; did you mean 'exact'"),
        ('kind = "exact", tolerance = 0.0', 'kind = "exact"', "takes"),
        ('kind = "exact", tolerance = 0.0', 'kind = "region", min_seeds = 3', "takes"),
        ('measure = "', 'measures = "', "fields are"),
    ],
)
def test_a_damaged_ledger_is_refused(old, new, message):
    text = '[Z1]\nstatement = "s."\nsource = "o"\nreported = "r"\nchapter = 1\nmeasure = "m"\n'
    text += 'rule = { kind = "exact", tolerance = 0.0 }\n'
    assert list(claims.read_ledger(text)) == ["Z1"]
    with pytest.raises(ValueError, match=message):
        claims.read_ledger(text.replace(old, new))


def test_the_closing_table_shows_every_verdict():
    verdicts = tuple(claims.judge(id, estimate=0) for id in ("P1", "M1"))
    table = claims.Table(verdicts)
    assert str(table).splitlines() == ["P1: exact (0)", "M1: exact (0)"]
    assert table._repr_mimebundle_()["text/html"].count("<tr>") == 3
    assert claims.MIME not in table._repr_mimebundle_()  # a table does not judge a second time


def test_measured_rounds_to_what_platforms_agree_on():
    verdict = claims.judge("A1", estimate=1 / 3, interval=(0.3, 0.4), n_seeds=5, unit="nats")
    assert verdict.measured == "0.333 [0.3, 0.4] nats, 5 seeds"
    assert claims.judge("X3", estimate=2e-16).measured == "0 up to rounding (below 1e-09)"
    assert claims.judge("X3", estimate=1e-3).measured == "0.001"
