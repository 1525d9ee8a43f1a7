import json
import math
import re

import numpy as np
import pytest
import torch
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


def test_a_card_has_an_anchor_and_shows_its_formulas():
    card = claims.judge("I2", estimate=0.5, evidence="$T = 64$ & more")._repr_mimebundle_()
    assert 'id="verdict-i2"' in card["text/html"]
    assert "at most of order <i>ε</i><sup>−1</sup>" in card["text/html"]
    assert "<i>T</i> = 64 &amp; more" in card["text/html"]
    assert "$" not in card["text/html"] + card["text/plain"]
    table = claims.Table((claims.judge("I2", estimate=0.5),))._repr_mimebundle_()
    assert "<td>at most of order <i>ε</i><sup>−1</sup></td>" in table["text/html"]


SURE = {"id": "A1", "estimate": 0.3, "interval": (0.2, 0.4), "n_seeds": 5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "P11", "estimate": 0}, "unknown claim id 'P11'; did you mean 'P1'"),
        ({"id": ["P1"], "estimate": 0}, "unknown claim id"),
        ({"id": "P1", "estimate": math.nan}, "P1: estimate=nan is not a finite number"),
        ({"id": "P1", "estimate": "0"}, "estimate='0' is not a finite number"),
        ({"id": "P1", "estimate": None}, "estimate=None is not a finite number"),
        ({"id": "P1", "estimate": torch.zeros(2)}, "is not a finite number"),
        ({"id": "P1", "estimate": -1}, "cannot be negative"),
        ({"id": "A3", "estimate": 1.5}, "between 0 and 1"),
        ({"id": "A1", "estimate": 0.3}, "95% interval"),
        (SURE | {"interval": (0.4, 0.5)}, "around estimate"),
        (SURE | {"interval": (0.4, 0.2)}, "around estimate"),
        (SURE | {"interval": (0.2, 0.3, 0.4)}, "must be a pair"),
        (SURE | {"interval": 0.3}, "must be a pair"),
        (SURE | {"interval": (0.2, math.inf)}, r"A1: interval\[1\]=inf is not a finite number"),
        (SURE | {"interval": (-math.inf, 0.4)}, r"interval\[0\]=-inf is not a finite number"),
        (SURE | {"interval": (0.2, math.nan)}, "not a finite number"),
        (SURE | {"interval": (0.2, "0.4")}, "not a finite number"),
        (SURE | {"n_seeds": math.nan}, "n_seeds=nan must be a whole number of at least 1"),
        (SURE | {"n_seeds": -1}, "n_seeds=-1 must be"),
        (SURE | {"n_seeds": 0}, "n_seeds=0 must be"),
        (SURE | {"n_seeds": 99.5}, "n_seeds=99.5 must be"),
        (SURE | {"n_seeds": True}, "n_seeds=True must be"),
        (SURE | {"n_seeds": "5"}, "n_seeds='5' must be"),
        (SURE | {"unit": None}, "unit=None must be a text"),
        (SURE | {"evidence": ["six runs"]}, "must be a text"),
        (SURE | {"evidence": r"$\nonsense$"}, "unknown TeX command"),
        (SURE | {"device": ""}, "device='' must be a text such as"),
        (SURE | {"device": torch.device("cpu")}, "must be a text such as"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        claims.judge(**arguments)


def test_numbers_of_other_libraries_are_numbers():
    interval = torch.tensor([0.2, 0.4], dtype=torch.float64)
    verdict = claims.judge("A1", estimate=torch.tensor(0.25), interval=interval, n_seeds=np.int64(5))
    assert verdict == claims.judge("A1", estimate=0.25, interval=(0.2, 0.4), n_seeds=5)
    json.dumps(verdict.to_json())


def test_a_device_of_another_kind_does_not_count():
    rule = Rule("region", low=0.0, needs="cuda")
    assert rule.verdict(1.0, (0.5, 1.5), 3, "cuda:0") == HOLDS
    assert rule.verdict(1.0, (0.5, 1.5), 3, "cudalike") == MORE_COMPUTE


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "exactly"}, "unknown rule kind 'exactly'"),
        ({"kind": "exact"}, "takes tolerance, got"),
        ({"kind": "exact", "tolerance": -1.0}, "tolerance=-1.0 is negative"),
        ({"kind": "exact", "tolerance": math.nan}, "tolerance=nan must be a finite number"),
        ({"kind": "exact", "tolerance": 0.0, "low": 0.0}, "takes tolerance, got"),
        ({"kind": "region", "min_seeds": 3}, "takes low, high, min_seeds, got"),
        ({"kind": "region", "low": math.inf}, "low=inf must be a finite number"),
        ({"kind": "region", "low": 2.0, "high": 1.0}, "low=2.0 lies above high=1.0"),
        ({"kind": "region", "low": 2.0, "min_seeds": 2.5}, "min_seeds=2.5 must be a whole number"),
        ({"kind": "share", "high": 1.0}, "takes no number"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Rule(**fields)


def cards(*ids):
    """Cards as the build collects them."""
    return [claims.Verdict(claims.ledger()[id], EXACT, 0.0).to_json() | {"page": "01_heads.html"} for id in ids]


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
    assert "P1 |" in judged
    assert "P3 |" not in judged
    assert "P3 |" in coming


def test_every_row_has_an_anchor_and_every_verdict_links_to_its_card():
    page = claims.scoreboard(cards("P1"), {1})
    rows = {
        id: row for id in IDS for row in page.splitlines() if f'| <span id="claim-{id.lower()}"></span>{id} |' in row
    }
    assert list(rows) == IDS
    assert '**<a href="01_heads.html#verdict-p1">✔✔ exact</a>**: 0 (chapter 1)' in rows["P1"]
    assert "not judged (chapter 1)" in rows["P2"]


def test_the_ledger_writes_formulas_as_mathematics():
    typed = re.compile(r"\beps\b|\^|<=|>=|\d[eE]-?\d|\blog10\b|\bsqrt\b|\b[A-Za-z] = |[\w)]\^")
    for claim in claims.ledger().values():
        for text in (claim.statement, claim.reported, claim.measure):
            assert not typed.search(re.sub(r"\$[^$]+\$", "", text)), text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "exact", tolerance = 0.0', 'kind = "exactly"', "unknown rule kind 'exactly'; did you mean 'exact'"),
        ('kind = "exact", tolerance = 0.0', 'kind = "exact"', "takes"),
        ('kind = "exact", tolerance = 0.0', 'kind = "region", min_seeds = 3', "takes"),
        ('measure = "', 'measures = "', "fields are"),
        ('kind = "exact", tolerance = 0.0', 'kind = "exact", tolerance = 0.0, seeds = 3', "fields are"),
        ('kind = "exact", tolerance = 0.0', 'kind = "exact", tolerance = nan', r"\[Z1\]: tolerance=nan"),
        ("chapter = 1", "chapter = 0", r"\[Z1\]: chapter=0"),
        ('source = "o"', "source = 3", "source=3 must be a text"),
        ('reported = "r"', r"reported = '$\eps$'", "unknown TeX command"),
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
    assert claims.judge("X3", estimate=2e-16).measured == "0 up to rounding (below 10⁻⁹)"
    assert claims.judge("X3", estimate=1e-3).measured == "0.001"
