"""Judging: what a chapter hands in, what is refused at the door, and the card that comes out."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.reporting import claims
from manyheads.reporting.claims.verdicts import EXACT, HOLDS, ILLUSTRATED, MORE_COMPUTE, PARTLY
from manyheads.reporting.statistics import Mean, student

NAMES = ("maximum", "second", "third", "fourth", "length")
GOOD = dict(zip(NAMES, (0.01, 20.0, 1.4, 1.2, 3.0), strict=True))


def mean(value, n_seeds=6, confidence=0.99):
    return Mean(value, 0.99 * value, 1.01 * value, n_seeds, confidence)


def good(**other):
    """What would illustrate I4, with some of it replaced."""
    return {name: mean(value) for name, value in GOOD.items()} | other


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


def test_conditions_are_judged_each_by_its_line():
    verdict = claims.judge("I4", conditions=good(third=mean(1.0), fourth=mean(0.8)))
    assert str(verdict) == (
        "I4: partly (3 of 5 conditions met, 6 seeds; maximum met, second met, third open, fourth failed, length met)"
    )
    assert verdict.outcomes == dict(zip(NAMES, ("met", "met", "open", "failed", "met"), strict=True))
    card = verdict._repr_mimebundle_()["text/html"]
    assert card.count("<li><strong>") == 5
    assert "NMSE of the third over that of the second: 1 [0.99, 1.01]; must be above 1: <strong>open</strong>" in card
    assert claims.judge("I4", conditions=good()).verdict == ILLUSTRATED


def test_intervals_as_students_make_them_fit_the_rule():
    values = {name: value * np.exp(np.linspace(-0.01, 0.01, 6)) for name, value in GOOD.items()}
    means = {name: student(v, confidence=1 - 0.05 / 5, log=True) for name, v in values.items()}
    assert claims.judge("I4", conditions=means).verdict == ILLUSTRATED
    too_narrow = means | {"third": student(values["third"], log=True)}
    with pytest.raises(ValueError, match=r"I4: third has an interval of confidence 0.95; ask student for 0.99 or more"):
        claims.judge("I4", conditions=too_narrow)


def test_the_smallest_number_of_seeds_counts():
    assert claims.judge("I4", conditions=good(length=mean(3.0, n_seeds=4))).verdict == MORE_COMPUTE
    assert ", 5 seeds" in claims.judge("I4", conditions=good(length=mean(3.0, n_seeds=5))).measured


def test_facts_and_numbers_where_a_rule_asks_for_no_seeds():
    given = {"proved": 1.0, "forced": 0.07, "obeyed": True}
    verdict = claims.judge("X4", conditions=given)
    assert verdict.verdict == HOLDS
    assert str(verdict) == "X4: holds (3 of 3 conditions met; proved met, forced met, obeyed met)"
    assert "must be true: <strong>met</strong>" in verdict._repr_mimebundle_()["text/html"]
    assert claims.judge("X4", conditions=given | {"obeyed": False}).verdict == PARTLY
    for library in (np.True_, torch.tensor(True)):
        assert claims.judge("X4", conditions=given | {"obeyed": library}) == verdict


def test_a_rule_younger_than_the_recording_says_so():
    old = claims.judge("I4", conditions=good(), recorded="2026-11-30")
    assert old.to_json()["note"] == "rule changed after the recording"
    assert "<dt>Note</dt><dd>rule changed after the recording</dd>" in old._repr_mimebundle_()["text/html"]
    for recorded in ("2026-12-01", "2027-01-15", "", None):
        card = claims.judge("I4", conditions=good(), recorded=recorded)
        assert card.to_json()["note"] == ""
        assert "<dt>Note</dt>" not in card._repr_mimebundle_()["text/html"]


def test_a_card_tells_the_history_of_its_rule():
    card = claims.judge("I4", conditions=good())._repr_mimebundle_()["text/html"]
    folded = card.split("<summary>Rule of 2026-12-01; 3 earlier versions</summary>")[1]
    for told in ("smallest effect of interest", "knows nothing (untrained)", "It gives: partly (0.667).", "scores 1"):
        assert told in folded


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


SURE = {"id": "I2", "estimate": 0.5, "interval": (0.4, 0.6), "n_seeds": 5}
HALF = mean(0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "P11", "estimate": 0}, "unknown claim id 'P11'; did you mean 'P1'"),
        ({"id": ["P1"], "estimate": 0}, "unknown claim id"),
        ({"id": "P1"}, "P1: estimate=None is not a finite number"),
        ({"id": "P1", "estimate": math.nan}, "P1: estimate=nan is not a finite number"),
        ({"id": "P1", "estimate": "0"}, "estimate='0' is not a finite number"),
        ({"id": "P1", "estimate": False}, "estimate=False is not a finite number"),
        ({"id": "P1", "estimate": np.False_}, "is not a finite number"),
        ({"id": "P1", "estimate": torch.zeros(2)}, "is not a finite number"),
        ({"id": "P1", "estimate": -1}, "cannot be negative"),
        ({"id": "P1", "estimate": 0, "interval": (0, 0)}, "a deviation has no interval"),
        ({"id": "P1", "mean": mean(1.0)}, "a deviation has no interval"),
        ({"id": "P1", "estimate": 0, "conditions": {}}, "leave out conditions={}: the rule lists none"),
        (SURE | {"interval": (0.6, 0.7)}, "around estimate"),
        (SURE | {"interval": (0.6, 0.4)}, "around estimate"),
        (SURE | {"interval": (0.4, 0.5, 0.6)}, "must be a pair"),
        (SURE | {"interval": 0.5}, "must be a pair"),
        (SURE | {"interval": (0.4, math.inf)}, r"I2: interval\[1\]=inf is not a finite number"),
        (SURE | {"interval": (-math.inf, 0.6)}, r"interval\[0\]=-inf is not a finite number"),
        (SURE | {"interval": (0.4, math.nan)}, "not a finite number"),
        (SURE | {"interval": (0.4, "0.6")}, "not a finite number"),
        (SURE | {"n_seeds": math.nan}, "n_seeds=nan must be a whole number of at least 1"),
        (SURE | {"n_seeds": -1}, "n_seeds=-1 must be"),
        (SURE | {"n_seeds": 0}, "n_seeds=0 must be"),
        (SURE | {"n_seeds": 99.5}, "n_seeds=99.5 must be"),
        (SURE | {"n_seeds": True}, "n_seeds=True must be"),
        (SURE | {"n_seeds": "5"}, "n_seeds='5' must be"),
        (SURE | {"mean": HALF}, "leave out estimate=0.5: mean has it"),
        ({"id": "I2", "mean": 0.5}, "mean=0.5 must be a statistics.Mean"),
        (
            {"id": "I2", "mean": mean(0.5, confidence=0.9)},
            "mean has an interval of confidence 0.9; ask student for 0.95",
        ),
        ({"id": "I2", "mean": mean(0.5, confidence=1.0)}, "confidence 1; ask"),
        ({"id": "I2", "mean": mean(0.5, n_seeds=2.5)}, "mean.n_seeds=2.5 must be"),
        ({"id": "I2", "mean": Mean(0.5, 0.6, 0.7, 5)}, "around estimate"),
        ({"id": "I2", "mean": Mean(math.nan, 0.6, 0.7, 5)}, "mean.mean=nan"),
        (SURE | {"unit": None}, "unit=None must be a text"),
        (SURE | {"evidence": ["six runs"]}, "must be a text"),
        (SURE | {"evidence": r"$\nonsense$"}, "unknown TeX command"),
        (SURE | {"device": ""}, "device='' must be a text such as"),
        (SURE | {"device": torch.device("cpu")}, "must be a text such as"),
        (SURE | {"recorded": "yesterday"}, "recorded='yesterday' must be a day"),
        (SURE | {"recorded": "2026-02-30"}, "must be a day"),
        (SURE | {"recorded": 20261201}, "must be a day"),
        ({"id": "I4"}, "conditions=None must map every condition"),
        ({"id": "I4", "conditions": [0.1] * 5}, "must map every condition"),
        ({"id": "I4", "estimate": 1.0, "conditions": good()}, "leave out estimate=1.0: the rule lists conditions"),
        ({"id": "I4", "n_seeds": 6, "conditions": good()}, "leave out n_seeds=6"),
        ({"id": "I4", "unit": "nats", "conditions": good()}, "leave out unit='nats'"),
        ({"id": "I4", "conditions": good(thrid=HALF)}, "unknown condition 'thrid'; did you mean 'third'"),
        ({"id": "I4", "conditions": good() | {3: HALF}}, "unknown condition 3"),
        (
            {"id": "I4", "conditions": {"maximum": HALF}},
            "condition 'second' is missing; the rule lists maximum, second",
        ),
        ({"id": "I4", "conditions": good(third=1.4)}, r"third=1.4 has no interval: .*confidence=0.99"),
        ({"id": "I4", "conditions": good(third=True)}, "third=True must be a number or a mean"),
        ({"id": "I4", "conditions": good(third=(1.3, 1.5))}, "has no interval"),
        ({"id": "I4", "conditions": good(third=Mean(1.4, 1.5, 1.6, 6, 0.99))}, r"third.interval=\(1.5, 1.6\) must be"),
        ({"id": "X4", "conditions": {"proved": 1.0, "forced": 0.1, "obeyed": 1.0}}, "obeyed=1.0 must be True or False"),
        ({"id": "X4", "conditions": {"proved": 1.0, "forced": math.inf, "obeyed": True}}, "forced=inf is not a finite"),
        (
            {"id": "X4", "conditions": {"proved": 1.0, "forced": 0.1, "obeyed": np.ones(2, bool)}},
            "must be True or False",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        claims.judge(**arguments)


ODD = [math.nan, math.inf, -math.inf, "1", b"1", None, [], {}, (1, 2), True, object(), 1j, torch.zeros(2)]


@given(st.sampled_from(NAMES), st.sampled_from([*ODD, 0.5, 3, np.float64(2)]))
@settings(max_examples=150, deadline=None)
def test_nothing_but_a_mean_stands_for_a_condition_that_needs_seeds(name, odd):
    with pytest.raises(ValueError, match=rf"^I4: {name}="):
        claims.judge("I4", conditions=good(**{name: odd}))


FIELDS = st.sampled_from(["mean", "low", "high", "n_seeds", "confidence"])


@given(st.sampled_from(NAMES), FIELDS, st.sampled_from(ODD))
@settings(max_examples=200, deadline=None)
def test_a_mean_that_is_damaged_is_refused(name, field, odd):
    fields = {"mean": 1.0, "low": 0.9, "high": 1.1, "n_seeds": 6, "confidence": 0.99} | {field: odd}
    with pytest.raises(ValueError, match=rf"^I4: {name}\b"):
        claims.judge("I4", conditions=good(**{name: Mean(**fields)}))


@given(st.sampled_from(["estimate", "interval", "n_seeds", "unit", "evidence", "device", "recorded"]), st.data())
@settings(max_examples=150, deadline=None)
def test_malformed_arguments_are_refused_by_name(name, data):
    fine = {"n_seeds": [None], "interval": [None, (1, 2)], "unit": ["1"], "evidence": ["1"], "recorded": [None]}
    odd = data.draw(st.sampled_from([value for value in ODD if value not in fine.get(name, ())]))
    with pytest.raises(ValueError, match=rf"^I2: .*{name}"):
        claims.judge(**SURE | {name: odd})


def test_numbers_of_other_libraries_are_numbers():
    interval = torch.tensor([0.25, 0.5], dtype=torch.float64)
    verdict = claims.judge("I2", estimate=torch.tensor(0.375), interval=interval, n_seeds=np.int64(5))
    assert verdict == claims.judge("I2", estimate=0.375, interval=(0.25, 0.5), n_seeds=5)
    assert verdict == claims.judge("I2", mean=Mean(0.375, 0.25, 0.5, 5))
    json.dumps(verdict.to_json())


def test_the_closing_table_shows_every_verdict():
    verdicts = (*(claims.judge(id, estimate=0) for id in ("P1", "M1")), claims.judge("I4", conditions=good()))
    table = claims.Table(verdicts)
    assert str(table).splitlines()[:2] == ["P1: exact (0)", "M1: exact (0)"]
    assert table._repr_mimebundle_()["text/html"].count("<tr>") == 4
    assert "<td>5 of 5 conditions met, 6 seeds</td><td>◆ illustrated</td>" in table._repr_mimebundle_()["text/html"]
    assert claims.MIME not in table._repr_mimebundle_()  # a table does not judge a second time


def test_measured_rounds_to_what_platforms_agree_on():
    verdict = claims.judge("I2", estimate=1 / 3, interval=(0.3, 0.4), n_seeds=5, unit="powers")
    assert verdict.measured == "0.333 [0.3, 0.4] powers, 5 seeds"
    assert claims.judge("X3", estimate=2e-16).measured == "0 up to rounding (below 10⁻⁹)"
    assert claims.judge("X3", estimate=1e-3).measured == "0.001"
