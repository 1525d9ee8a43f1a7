"""The words for verdicts, with the mark and the meaning of each; and the words for one condition."""

EXACT, HOLDS, ILLUSTRATED, PARTLY = "exact", "holds", "illustrated", "partly"
INCONCLUSIVE, NOT_HERE, MORE_COMPUTE = "inconclusive", "not reproduced here", "needs more compute"

MARKS = {
    EXACT: "✔✔",
    HOLDS: "✔",
    ILLUSTRATED: "◆",
    PARTLY: "◐",
    INCONCLUSIVE: "?",
    NOT_HERE: "✘",
    MORE_COMPUTE: "…",
}
MEANINGS = {
    EXACT: "proved or counted, and no deviation beyond rounding was found",
    HOLDS: "the measured interval, or every listed condition, is on the claimed side of its line",
    ILLUSTRATED: "every listed condition is met, but the claim is about all networks, which no experiment can show",
    PARTLY: "some of what is listed is met, or all of it in a narrower setting than the claim's",
    INCONCLUSIVE: "an interval holds both sides of the line, and nothing that was listed is met",
    NOT_HERE: "decided, and it came out otherwise; a paper's setting may differ from ours",
    MORE_COMPUTE: "too few seeds, or no such device here: not judged",
}
VERDICTS = tuple(MARKS)

MET, FAILED, OPEN = "met", "failed", "open"
