"""The book's own ledger: what each rule says of results that one can imagine, and of predictors that know nothing."""

import re
from datetime import date

import pytest

from manyheads.reporting import claims
from manyheads.reporting.claims import rules
from manyheads.reporting.claims.cards import rule_notes
from manyheads.reporting.claims.verdicts import (
    EXACT,
    HOLDS,
    ILLUSTRATED,
    INCONCLUSIVE,
    MORE_COMPUTE,
    NOT_HERE,
    PARTLY,
    VERDICTS,
)
from manyheads.reporting.statistics import Mean

IDS = (
    [f"I{i}" for i in range(1, 10)]
    + [f"A{i}" for i in range(1, 6)]
    + [f"M{i}" for i in range(1, 15)]
    + [f"P{i}" for i in range(1, 7)]
    + [f"X{i}" for i in range(1, 11)]
)
COUNTED = {"": (0, 1)}
FACT = (True, False)
IMAGINED = {
    "I1": (
        ILLUSTRATED,
        {
            "learned": (0.002, 0.4),
            "ratio": (40, 3),
            "harder": (1.6, 0.9),
            "growth": (2.5, 0.7),
            "converged": (1.1, 2.4),
        },
    ),
    "I2": (HOLDS, {"": (0.47, 1.2)}),
    "I3": (HOLDS, {"maximum": (0.3, 0.95), "second": (1.0, 0.5), "gap": (0.7, 0.02)}),
    "I4": (
        ILLUSTRATED,
        {
            "maximum": (0.003, 0.3),
            "second": (20, 1.4),
            "third": (1.4, 0.9),
            "fourth": (1.2, 0.8),
            "length": (3, 1.1),
        },
    ),
    "I5": (ILLUSTRATED, {"": (1.0, 1.4)}),
    "I6": (
        HOLDS,
        dict.fromkeys(("enough_heads", "too_few_heads", "induction_two", "induction_one", "three_way"), FACT),
    ),
    "I7": (HOLDS, {"learned": (2.4e-4, 0.2), "first": (1.9, 0.3), "last": (1.7, 0.4)}),
    "I8": (HOLDS, {"learned": (0.001, 0.5), "far": (0.98, 0.1), "growth": (12, 1.2), "no_help": (1.0, 3.0)}),
    "I9": (HOLDS, {"learned": (0.001, 0.9), "weights": (0.01, 0.3)}),
    "A1": (HOLDS, {"fewest": (3.0, 0.0), "most": (1.6, -0.1)}),
    "A2": (HOLDS, {"learned": (1e-4, 0.5), "place": (0.0, -3.0)}),
    "A3": (HOLDS, {"returns": (0.8, 0.0), "diminish": (0.5, -0.2), "longer": (0.3, 0.0)}),
    "A4": (HOLDS, {"ends": (0.05, -0.02), "order": (-0.9, 0.3)}),
    "A5": (HOLDS, {"learned": (1.7, 0.1), "at_least": (0.005, -0.05)}),
    **{f"M{i}": (EXACT, COUNTED) for i in range(1, 10)},
    "M10": (EXACT, {"": (1e-14, 1e-3)}),
    "M11": (HOLDS, {"sgd": (0.0, 0.6), "decay": (0.05, 0.0), "adamw": (0.5, 0.02)}),
    "M12": (HOLDS, {"learned": (1.7, 0.1), "rebalanced": (0.001, 0.08), "reset": (-0.002, 0.05)}),
    "M13": (EXACT, {"": (1e-9, 0.1)}),
    "M14": (HOLDS, {"exponent": (1.9, 0.4), "early": (0.5, -0.3)}),
    "P1": (EXACT, COUNTED),
    "P2": (EXACT, COUNTED),
    "P3": (HOLDS, {"same": (1.01, 1.3), "sensitive": (1.9, 1.0)}),
    "P4": (PARTLY, {"smallest": (0.02, -0.01), "middle": (0.03, 0.0), "largest": (0.02, 0.001)}),
    "P5": (
        HOLDS,
        {"piqa": (0.02, -0.01), "hellaswag": (0.03, 0.0), "arc_easy": (0.01, 0.001), "winogrande": (0.02, -0.02)},
    ),
    "P6": (HOLDS, {"first": (0.3, -0.1), "last": (0.2, 0.0)}),
    "X1": (EXACT, COUNTED),
    "X2": (EXACT, COUNTED),
    "X3": (EXACT, {"": (2e-16, 1e-6)}),
    "X4": (HOLDS, {"proved": (1.0, 0.5), "forced": (0.2, 0.01), "obeyed": FACT}),
    "X5": (EXACT, {"": (2e-16, 1e-6)}),
    "X6": (
        HOLDS,
        {"wide": FACT, "narrow": FACT, "opposed": FACT, "learned": (1.7, 0.1), "apart": (0.03, 0.001)},
    ),
    "X7": (HOLDS, {"": (0.74, 1.2)}),
    "X8": (HOLDS, {"": (0.975, 1.2)}),
    "X9": (HOLDS, {"error": (0.6, 1.3), "cycle": FACT, "planted": FACT}),
    "X10": (HOLDS, {"error": (0.6, 1.3), "fewer": FACT, "optimal": FACT}),
}
"""By claim: the best word it can get, and of every quantity a number that shows it and one that shows the contrary."""


def imagine(id, choose, n_seeds=9, unsure=False):
    """Hand in the number that ``choose`` picks for each quantity, or an interval that holds both."""
    rule = claims.ledger()[id].rule
    given = {}
    for place, (name, both) in enumerate(IMAGINED[id][1].items()):
        if rule.lines[name].is_fact or not rule.min_seeds:
            given[name] = both[choose(place)]
        elif unsure:
            given[name] = Mean(sum(both) / 2, min(both), max(both), n_seeds, rule.confidence)
        else:
            value = both[choose(place)]
            given[name] = Mean(value, value - 1e-6, value + 1e-6, n_seeds, rule.confidence)
    device = rule.needs or "cpu"
    if rule.conditions:
        return claims.judge(id, conditions=given, device=device).verdict
    (value,) = given.values()
    return claims.judge(id, device=device, **{"mean" if rule.min_seeds else "estimate": value}).verdict


def good(place):
    return 0


def bad(place):
    return 1


def test_the_ledger_lists_every_claim_of_the_five_sources():
    assert list(claims.ledger()) == IDS
    assert sorted(IMAGINED) == sorted(IDS)


@pytest.mark.parametrize("id", IDS)
def test_a_result_that_shows_everything_gets_the_best_word(id):
    assert imagine(id, good) == IMAGINED[id][0]


@pytest.mark.parametrize("id", IDS)
def test_a_result_that_shows_the_contrary_of_everything_is_not_reproduced(id):
    assert imagine(id, bad) == NOT_HERE


@pytest.mark.parametrize("id", [id for id in IDS if len(IMAGINED[id][1]) > 1])
def test_a_result_that_shows_some_of_it_is_partly_whichever_it_is(id):
    for met in range(len(IMAGINED[id][1])):
        assert imagine(id, lambda place, met=met: int(place != met)) == PARTLY
        assert imagine(id, lambda place, met=met: int(place == met)) == PARTLY


STATISTICAL = [id for id in IDS if claims.ledger()[id].rule.min_seeds]


@pytest.mark.parametrize("id", STATISTICAL)
def test_intervals_that_hold_both_sides_are_inconclusive(id):
    assert imagine(id, bad, unsure=True) == INCONCLUSIVE


@pytest.mark.parametrize("id", STATISTICAL)
def test_too_few_seeds_need_more_compute_whatever_they_show(id):
    assert imagine(id, good, n_seeds=4) == imagine(id, bad, n_seeds=4) == MORE_COMPUTE


@pytest.mark.parametrize("id", [id for id in IDS if claims.ledger()[id].rule.needs])
def test_a_claim_about_gpus_needs_one(id):
    rule = claims.ledger()[id].rule
    shown = {name: Mean(both[0], both[0], both[0], 9, 0.999) for name, both in IMAGINED[id][1].items()}
    assert claims.judge(id, conditions=shown).verdict == MORE_COMPUTE
    assert claims.judge(id, conditions=shown, device=f"{rule.needs}:0").verdict == HOLDS


@pytest.mark.parametrize("control", rules.CONTROLS)
@pytest.mark.parametrize("id", STATISTICAL)
def test_predictors_that_know_nothing_do_not_show_a_claim(id, control):
    rule = claims.ledger()[id].rule
    measured = {
        name: value if isinstance(value, bool) else Mean(value, value, value, 10**6, rule.confidence)
        for name, value in rule.controls[control].items()
    }
    assert claims.judge(id, conditions=measured, device=rule.needs or "cpu").verdict in (PARTLY, NOT_HERE)


def test_a_network_that_learns_nothing_does_not_illustrate_that_rank_is_hard():
    """Squared errors rise with the variance of the target, and the NMSE of an untrained network with the length."""
    sure = dict.fromkeys(("maximum", "second", "third", "fourth", "length"))
    constant = {name: Mean(1, 1, 1, 9, 0.99) for name in sure}
    assert claims.judge("I4", conditions=constant).verdict == NOT_HERE
    scaled = zip(sure, (75, 30 / 16, 42 / 30, 52 / 42, 15), strict=True)
    assert claims.judge("I4", conditions={n: Mean(v, v, v, 9, 0.99) for n, v in scaled}).verdict == PARTLY


def test_rules_say_when_they_were_written_and_every_earlier_version():
    for claim in claims.ledger().values():
        rule = claim.rule
        assert date(2026, 11, 30) <= rule.since
        assert all(change.date <= rule.since for change in rule.history)
        assert 1 <= claim.chapter <= 8
        assert claim.statement.endswith(".")
    assert [len(claims.ledger()[id].rule.history) for id in ("I1", "I4", "I5", "X4")] == [2, 3, 2, 1]


def test_every_rule_puts_into_words_each_verdict_it_can_give():
    possible = {id: {IMAGINED[id][0], NOT_HERE} for id in IDS}
    for id in IDS:
        rule = claims.ledger()[id].rule
        possible[id] |= {PARTLY} if rule.conditions else set()
        possible[id] |= {INCONCLUSIVE} if rule.min_seeds else set()
        words = rule.in_words()
        assert {word for word in VERDICTS if re.search(rf"\b{word}\b", words)} == possible[id], words


def test_every_line_says_what_fixes_it():
    known = ("the claim's own bound", "smallest effect of interest", "non-inferiority margin", "equivalence margin")
    for claim in claims.ledger().values():
        for condition in claim.rule.lines.values():
            if not condition.is_fact and claim.rule.kind != "exact":
                assert condition.line.startswith((*known, "margin: ")), (claim.id, condition)


def test_the_ledger_writes_formulas_as_mathematics():
    typed = re.compile(r"\beps\b|\^|<=|>=|\d[eE]-?\d|\blog10\b|\bsqrt\b|\b[A-Za-z] = |[\w)]\^")
    for claim in claims.ledger().values():
        conditions = [line.text for line in claim.rule.conditions.values()]
        for text in (claim.statement, claim.reported, claim.measure, *conditions, *rule_notes(claim.rule)):
            assert not typed.search(re.sub(r"\$[^$]+\$", "", text)), text


PLANTED = """[Z1]
statement = "s."
source = "o"
reported = "r"
chapter = 1
measure = "m"

[Z1.rule]
kind = "conditions"
conditions.rise = { text = "error of rank 2 over rank 1", low = 1.5, line = "smallest effect of interest: half" }
conditions.seen = { text = "it was seen" }
min_seeds = 5
since = 2026-12-01
controls.constant = { rise = 1.0, seen = true }
controls.random = { rise = 1.0, seen = true }
controls.untrained = { rise = 1.0, seen = true }
history = [{ date = 2026-11-30, rule = "r", why = "w" }]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("constant = { rise = 1.0", "constant = { rise = 1.9", r"\[Z1\]: controls.constant=.* would satisfy the rule"),
        ("untrained = { rise = 1.0", "untrained = { rise = 15.0", "controls.untrained=.* would satisfy the rule"),
        ("seen = true }", "seen = 1 }", "expected true or false"),
        ("rise = 1.0", "rise = true", "expected a number"),
        ("rise = 1.0, ", "", "expected a table of rise, seen"),
        (
            "controls.random = { rise = 1.0, seen = true }\n",
            "",
            "controls are .*, expected constant, random, untrained",
        ),
        ("constant = { rise = 1.0, seen = true }", "constant = 1.0", "expected a table"),
        ('kind = "conditions"', 'kind = "conditons"', "unknown rule kind 'conditons'; did you mean 'conditions'"),
        ('kind = "conditions"', 'kind = "region"', "a rule of kind 'region' takes low, high, line, got"),
        ('kind = "conditions"', 'kind = "conditions"\nlow = 1.0', "takes conditions, got"),
        (', line = "smallest effect of interest: half"', "", "line is missing"),
        ('text = "it was seen"', 'text = "it was seen", line = "x"', "neither low nor high"),
        ("low = 1.5", "lower = 1.5", "fields are"),
        ("low = 1.5", "low = inf", "low=inf must be a finite number"),
        ("low = 1.5", "low = 1.5, high = 1.0", "low=1.5 lies above high=1.0"),
        ("since = 2026-12-01\n", "", "fields are"),
        ("since = 2026-12-01", 'since = "2026-12-01"', "must be a date"),
        ("date = 2026-11-30", "date = 2026-11-30T10:00:00", "must be a date"),
        ('why = "w"', 'because = "w"', "fields are"),
        ('history = [{ date = 2026-11-30, rule = "r", why = "w" }]', "history = 3", "must be a list"),
        ("min_seeds = 5", "min_seeds = 2.5", "whole number"),
        ("min_seeds = 5", 'at_most = "partly"', "because='' gives the reason"),
        ("min_seeds = 5", 'at_most = "exact"\nbecause = "b"', "must be illustrated or partly"),
        ("min_seeds = 5", 'because = "b"', "gives the reason for at_most=None"),
        ("min_seeds = 5", "illustrates = true", "fields are"),
        ('measure = "', 'measures = "', "fields are"),
        ("chapter = 1", "chapter = 0", r"\[Z1\]: chapter=0"),
        ('source = "o"', "source = 3", "source=3 must be a text"),
        ('source = "o"', 'source = " "', "must be a text"),
        ('reported = "r"', r"reported = '$\eps$'", "unknown TeX command"),
        ('rule = "r"', r"rule = '$\eps$'", "unknown TeX command"),
    ],
)
def test_a_damaged_ledger_is_refused(old, new, message):
    assert list(claims.read_ledger(PLANTED)) == ["Z1"]
    assert old in PLANTED
    with pytest.raises(ValueError, match=message):
        claims.read_ledger(PLANTED.replace(old, new))


def test_a_rule_must_be_a_table():
    with pytest.raises(ValueError, match=r"\[Z1\]: rule=None must be a table"):
        claims.read_ledger('[Z1]\nstatement = "s."\n')
    with pytest.raises(ValueError, match=r"\[Z1\]: conditions=3 must be a table"):
        claims.read_ledger('[Z1.rule]\nkind = "conditions"\nconditions = 3\n')
