"""The ledger of claims, the rules that judge them, and the scoreboard.

A chapter measures and calls :func:`judge` with the id as a literal. The verdict comes from the rule in ``claims.toml``;
an author cannot pass one. The build counts the cards: every claim of a chapter in the book is judged exactly once.
"""

from manyheads.reporting.claims.cards import MIME, Table, Verdict, judge
from manyheads.reporting.claims.ledger import Claim, ledger, read_ledger
from manyheads.reporting.claims.rules import EXACT, HOLDS, MARKS, MORE_COMPUTE, NOT_HERE, PARTLY, VERDICTS, Rule
from manyheads.reporting.claims.scoreboard import check, scoreboard

__all__ = [
    "EXACT",
    "HOLDS",
    "MARKS",
    "MIME",
    "MORE_COMPUTE",
    "NOT_HERE",
    "PARTLY",
    "VERDICTS",
    "Claim",
    "Rule",
    "Table",
    "Verdict",
    "check",
    "judge",
    "ledger",
    "read_ledger",
    "scoreboard",
]
