"""The ledger of claims, the rules that judge them, and the scoreboard.

A chapter measures and calls :func:`judge` with the id as a literal. The verdict comes from the rule in ``claims.toml``;
an author cannot pass one. The build counts the cards: every claim of a chapter in the book is judged exactly once.
"""

from manyheads.reporting.claims.cards import MIME, Table, Verdict
from manyheads.reporting.claims.conditions import Condition, Measured
from manyheads.reporting.claims.judging import judge
from manyheads.reporting.claims.ledger import Claim, ledger, read_ledger
from manyheads.reporting.claims.rules import Change, Rule
from manyheads.reporting.claims.scoreboard import check, scoreboard
from manyheads.reporting.claims.verdicts import MARKS, VERDICTS

__all__ = [
    "MARKS",
    "MIME",
    "VERDICTS",
    "Change",
    "Claim",
    "Condition",
    "Measured",
    "Rule",
    "Table",
    "Verdict",
    "check",
    "judge",
    "ledger",
    "read_ledger",
    "scoreboard",
]
