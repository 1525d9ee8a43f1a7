"""Rules at their edges, and the laws they keep."""

import math
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.reporting.claims import Change, Condition, Measured, Rule
from manyheads.reporting.claims.verdicts import (
    EXACT,
    FAILED,
    HOLDS,
    ILLUSTRATED,
    INCONCLUSIVE,
    MARKS,
    MEANINGS,
    MET,
    MORE_COMPUTE,
    NOT_HERE,
    OPEN,
    PARTLY,
)

DAY = date(2026, 12, 1)
OWN = "the claim's own bound"
KNOWS_NOTHING = {"constant": 0.0, "random": -1.0, "untrained": 0.0}
COUNT = {"kind": "exact", "since": DAY, "tolerance": 0.0}
BOUND = {"kind": "region", "since": DAY, "high": 1.0, "line": OWN}
RISE = {"kind": "region", "since": DAY, "low": 0.0, "line": OWN, "min_seeds": 5, "controls": KNOWS_NOTHING}
CAP = {"at_most": ILLUSTRATED, "because": "no experiment can show more"}
WIDE = {"kind": "region", "since": DAY, "low": -1.0, "high": 1.0, "line": OWN}


def says(fields, value, interval=None, n_seeds=None, device="cpu"):
    return Rule(**fields).verdict({"": Measured(value, interval, n_seeds)}, device)


@pytest.mark.parametrize(
    ("fields", "value", "interval", "seeds", "verdict"),
    [
        (COUNT, 0.0, None, None, EXACT),
        (COUNT, 5e-324, None, None, NOT_HERE),
        (COUNT | {"tolerance": 1e-9}, 1e-9, None, None, EXACT),
        (BOUND, 1.0, None, None, HOLDS),
        (BOUND, 1.01, None, None, NOT_HERE),
        (BOUND, 0.9, (0.8, 1.1), None, INCONCLUSIVE),
        (BOUND | CAP, 1.0, None, None, ILLUSTRATED),
        (BOUND | CAP, 1.01, None, None, NOT_HERE),
        (RISE, 1.0, (0.5, 1.5), 5, HOLDS),
        (RISE, 1.0, (0.5, 1.5), 4, MORE_COMPUTE),
        (RISE, 1.0, (0.5, 1.5), None, MORE_COMPUTE),
        (RISE, 0.1, (-0.1, 0.3), 5, INCONCLUSIVE),
        (RISE, 0.1, (0.0, 0.3), 5, INCONCLUSIVE),
        (RISE, 0.0, (0.0, 0.0), 5, NOT_HERE),
        (RISE, -0.2, (-0.3, 0.0), 5, NOT_HERE),
        (RISE | CAP, 1.0, (0.5, 1.5), 5, ILLUSTRATED),
        (RISE | CAP, 1.0, (0.5, 1.5), 4, MORE_COMPUTE),
        (RISE | CAP, 0.1, (-0.1, 0.3), 5, INCONCLUSIVE),
        (RISE | CAP | {"at_most": PARTLY}, 1.0, (0.5, 1.5), 5, PARTLY),
        (RISE | {"needs": "cuda"}, 1.0, (0.5, 1.5), 9, MORE_COMPUTE),
        (WIDE, 0.0, (-1.5, 1.5), None, INCONCLUSIVE),
        (WIDE, 0.0, (-0.5, 0.5), None, HOLDS),
        (WIDE, 2.0, (1.0, 3.0), None, NOT_HERE),
    ],
)
def test_a_rule_gives_its_verdict_at_the_edge(fields, value, interval, seeds, verdict):
    assert says(fields, value, interval, seeds) == verdict


def test_a_device_of_another_kind_does_not_count():
    rule = RISE | {"needs": "cuda"}
    assert says(rule, 1.0, (0.5, 1.5), 5, "cuda:0") == HOLDS
    assert says(rule, 1.0, (0.5, 1.5), 5, "cudalike") == MORE_COMPUTE


TWO = {
    "kind": "conditions",
    "since": DAY,
    "conditions": {"a": Condition("a", low=1.0, line=OWN), "b": Condition("b", low=1.0, line=OWN)},
}
INTERVALS = {MET: (1.5, 2.5), FAILED: (0.1, 0.9), OPEN: (0.5, 2.5)}


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ((MET, MET), HOLDS),
        ((MET, OPEN), PARTLY),
        ((FAILED, MET), PARTLY),
        ((OPEN, OPEN), INCONCLUSIVE),
        ((FAILED, OPEN), INCONCLUSIVE),
        ((FAILED, FAILED), NOT_HERE),
    ],
)
def test_conditions_add_up(outcomes, verdict):
    measured = {name: Measured(0.0, INTERVALS[o]) for name, o in zip("ab", outcomes, strict=True)}
    assert Rule(**TWO).outcomes(measured) == list(outcomes)
    assert Rule(**TWO).verdict(measured) == verdict


def test_intervals_share_the_five_percent_and_facts_take_none_of_it():
    assert Rule(**RISE).confidence == 0.95
    assert Rule(**TWO).confidence == 1 - 0.05 / 2
    fact = {"kind": "conditions", "since": DAY, "conditions": {**TWO["conditions"], "c": Condition("c")}}
    assert Rule(**fact).confidence == 1 - 0.05 / 2


NUMBERS = st.floats(-3, 3)
REGIONS = st.tuples(NUMBERS, st.floats(0, 3)).map(lambda pair: (pair[0], pair[0] + pair[1]))
SPREAD = st.floats(0, 3)


@given(NUMBERS, SPREAD, SPREAD, SPREAD, SPREAD, REGIONS)
def test_widening_an_interval_never_makes_up_a_mind(value, left, right, more_left, more_right, region):
    condition = Condition("q", *region, line=OWN)
    near = condition.outcome(Measured(value, (value - left, value + right)))
    wide = condition.outcome(Measured(value, (value - left - more_left, value + right + more_right)))
    assert wide in (near, OPEN)
    rule = {"kind": "region", "since": DAY, "low": region[0], "high": region[1], "line": OWN}
    before = says(rule, value, (value - left, value + right))
    after = says(rule, value, (value - left - more_left, value + right + more_right))
    assert after in (before, INCONCLUSIVE)


@given(NUMBERS, SPREAD, SPREAD, SPREAD, NUMBERS)
def test_a_better_result_never_gets_a_worse_word(value, left, right, better, low):
    order = [NOT_HERE, INCONCLUSIVE, HOLDS]
    rule = {"kind": "region", "since": DAY, "low": low, "line": OWN}
    words = [says(rule, v, (v - left, v + right)) for v in (value, value + better)]
    assert order.index(words[0]) <= order.index(words[1])


STATES = st.sampled_from([MET, FAILED, OPEN])


@given(st.lists(STATES, min_size=1, max_size=5), st.data())
def test_one_more_condition_met_never_gives_a_worse_word(outcomes, data):
    order = [NOT_HERE, INCONCLUSIVE, PARTLY, HOLDS]
    names = [f"c{i}" for i in range(len(outcomes))]
    rule = Rule("conditions", DAY, conditions={name: Condition(name, low=1.0, line=OWN) for name in names})
    better = list(outcomes)
    better[data.draw(st.integers(0, len(outcomes) - 1))] = MET
    before, after = (
        rule.verdict({n: Measured(0.0, INTERVALS[o]) for n, o in zip(names, states, strict=True)})
        for states in (outcomes, better)
    )
    assert order.index(before) <= order.index(after)


@given(REGIONS, st.sampled_from(["constant", "random", "untrained"]), st.floats(0.001, 0.999))
@settings(max_examples=50)
def test_a_rule_that_a_control_satisfies_is_refused(region, control, at):
    low, high = region
    fields = {"kind": "region", "since": DAY, "low": low, "high": high + 1, "line": OWN, "min_seeds": 3}
    outside = dict.fromkeys(("constant", "random", "untrained"), low - 1)
    Rule(**fields, controls=outside)
    inside = low + at * (high + 1 - low)
    with pytest.raises(ValueError, match=f"controls.{control}=.* would satisfy the rule"):
        Rule(**fields, controls=outside | {control: inside})


def test_a_cap_does_not_let_a_control_pass():
    with pytest.raises(ValueError, match="would satisfy the rule"):
        Rule(**RISE | {"controls": KNOWS_NOTHING | {"random": 1.0}, "at_most": PARTLY, "because": "small"})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (COUNT | {"kind": "exactly"}, "unknown rule kind 'exactly'; did you mean 'exact'"),
        ({"kind": "exact", "since": DAY}, "takes tolerance, got"),
        (COUNT | {"tolerance": -1.0}, "tolerance=-1.0 is negative"),
        (COUNT | {"tolerance": math.nan}, "tolerance=nan must be a finite number"),
        (COUNT | {"low": 0.0}, "takes tolerance, got"),
        (COUNT | {"min_seeds": 3}, "nothing in the rule carries an interval"),
        (COUNT | CAP, "must be illustrated or partly, for a rule that is not exact"),
        (COUNT | {"since": "2026-12-01"}, "must be a date"),
        ({"kind": "region", "since": DAY, "line": OWN}, "needs low, high or both"),
        (BOUND | {"line": ""}, "line is missing"),
        (BOUND | {"high": math.inf}, "high=inf must be a finite number"),
        (BOUND | {"high": True}, "high=True must be a finite number"),
        (BOUND | {"low": 2.0}, "low=2.0 lies above high=1.0"),
        (BOUND | {"at_most": HOLDS, "because": "b"}, "must be illustrated or partly"),
        (BOUND | {"at_most": PARTLY}, "give both or none"),
        (RISE | {"min_seeds": 2.5}, "min_seeds=2.5 must be a whole number"),
        (RISE | {"min_seeds": 0}, "min_seeds=0 must be a whole number"),
        (RISE | {"controls": {}}, "expected constant, random, untrained"),
        (RISE | {"controls": KNOWS_NOTHING | {"trained": 0.0}}, "expected constant, random, untrained"),
        (RISE | {"controls": KNOWS_NOTHING | {"random": None}}, "expected a number"),
        (RISE | {"controls": KNOWS_NOTHING | {"random": math.nan}}, "must be a finite number"),
        (RISE | {"controls": KNOWS_NOTHING | {"random": {"a": 1.0}}}, "expected one number"),
        (TWO | {"conditions": {}}, "takes conditions, got"),
        (TWO | {"conditions": {"a": 1.0}}, "must map names to Condition"),
        (TWO | {"conditions": {"a": Condition("a")}, "min_seeds": 3}, "nothing in the rule carries an interval"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Rule(**fields)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Condition("q", low=1.0), "line is missing"),
        (lambda: Condition("q", low=math.nan, line=OWN), "low=nan"),
        (lambda: Condition("q", low="1", line=OWN), "low='1' must be a finite number"),
        (lambda: Condition("q", line=OWN), "neither low nor high"),
        (lambda: Condition(3), "text=3 must be a text"),
        (lambda: Condition("$\\nonsense$"), "unknown TeX command"),
        (lambda: Change("2026-11-30", "r", "w"), "must be a date"),
        (lambda: Change(DAY, "r", None), "why=None must be a text"),
    ],
)
def test_a_condition_or_a_change_that_means_nothing_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_every_word_has_its_own_mark_and_meaning():
    assert len(set(MARKS.values())) == len(MARKS) == len(MEANINGS) == len(set(MEANINGS.values())) == 7
    assert list(MARKS) == list(MEANINGS)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (COUNT, "exact when the largest deviation is 0, otherwise not reproduced here"),
        (BOUND, "holds when it is at most 1, otherwise not reproduced here"),
        (
            RISE | CAP | {"needs": "cuda"},
            "illustrated when the whole 95% interval lies above 0, not reproduced here when it lies outside, otherwise "
            "inconclusive; from at least 5 seeds; needs cuda; illustrated at most, because no experiment can show more",
        ),
        (TWO, "holds when all 2 conditions are met, partly when some are, not reproduced here when none is"),
    ],
)
def test_a_rule_in_words_says_what_would_fail_it(fields, words):
    assert Rule(**fields).in_words() == words
