import re

import pytest
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from nbformat.v4 import new_output

from bookkit.errors import ClaimError
from bookkit.notebooks import toc, verdicts
from manyheads.reporting import claims
from tests.bookkit.small_book import code, markdown, notebook


def judged(*ids, source="pass"):
    cell = code(source)
    cell.outputs = [
        new_output("display_data", {verdicts.MIME: {"id": id, "verdict": "holds", "chapter": 1}}) for id in ids
    ]
    return notebook(markdown("# T"), cell)


@pytest.fixture
def book(project):
    """Both chapters, each with its claim judged."""
    first, second = toc.chapters(project)
    return {first: judged("A1"), second: judged("B2")}


def test_every_claim_once(book, ledger):
    assert verdicts.scoreboard(book, ledger) == "# Scoreboard\n\n- A1: holds\n- B2: holds\n"


def test_cards_say_where_they_were_found(book):
    found = [(card["id"], card["found_in"], card["page"]) for card in verdicts.collect(book)]
    assert found == [("A1", 1, "01_first.html"), ("B2", 2, "02_second.html")]


@pytest.mark.parametrize(
    ("cards", "message"),
    [
        ((), "A1 is not judged"),
        (("A1", "A1"), "A1 is judged 2 times"),
        (("A1", "B2"), "B2 is judged 2 times"),
        (("A1", "Z9"), "unknown claim id Z9"),
    ],
)
def test_claims_that_do_not_add_up(book, ledger, cards, message):
    first = next(iter(book))
    with pytest.raises(ClaimError, match=message):
        verdicts.scoreboard({**book, first: judged(*cards)}, ledger)


def test_chapters_still_to_come_need_no_verdict(book, ledger):
    first = next(iter(book))
    assert verdicts.scoreboard({first: book[first]}, ledger).endswith("- A1: holds\n")


@pytest.mark.parametrize(
    "source",
    [
        "claims.judge(name, estimate=1)",
        "judge('A' + '1', estimate=1)",
        "claims.judge(estimate=1, id=which)",
        "for i in ids:\n    v = claims.judge(f'A{i}', estimate=1)",
        "claims.judge()",
        "%matplotlib inline\nclaims.judge(x)",
    ],
)
def test_an_id_that_nobody_could_search_for(book, ledger, source):
    first = next(iter(book))
    with pytest.raises(ClaimError, match=r"01_first, cell 2: judge\(.*must name its claim as a literal"):
        verdicts.scoreboard({**book, first: judged("A1", source=source)}, ledger)


@pytest.mark.parametrize(
    "source", ["claims.judge('A1', estimate=x)", "judge(id='A1')", "judgement(x)", "'judge(x)'", "judge(", "# judge(x)"]
)
def test_literal_ids_and_other_words(source):
    assert verdicts.hidden_ids(judged(source=source), "t") == []


def test_the_ledger_of_the_book_fits_in(book):
    assert verdicts.MIME == claims.MIME
    found = verdicts.problems({next(iter(book)): judged("Z9")}, claims)
    assert any("unknown claim id 'Z9'" in problem for problem in found)
    assert any("chapter 1 and has no verdict card" in problem for problem in found)
    assert claims.scoreboard([], []).startswith("# Scoreboard")


def some_verdict(claim):
    """A claim with some result, in the words of cards."""
    values = {name: claims.Measured(not line.is_fact and 0.0) for name, line in claim.rule.lines.items()}
    return claims.Verdict(claim, "holds", values, evidence="tokens in $[0, 1]$, E < T d")


def test_the_scoreboard_of_the_book_has_links_and_formulas_when_sphinx_has_read_it(book):
    first = next(iter(book))
    cell = code("pass")
    judged = {id: some_verdict(claim) for id, claim in claims.ledger().items()}
    cards = [verdict.to_json() for verdict in judged.values()]
    cell.outputs = [new_output("display_data", {verdicts.MIME: card}) for card in cards]
    chapters = {claim.chapter for claim in claims.ledger().values()}
    page = claims.scoreboard(verdicts.collect({first: notebook(cell)}), chapters)
    html = create_md_parser(MdParserConfig(enable_extensions={"dollarmath"}), RendererHTML).render(page)
    for id in claims.ledger():
        anchor = id.lower()
        (row,) = re.findall(rf'<tr>\n<td><span id="claim-{anchor}"></span>.*?</tr>', html, flags=re.S)
        assert f'<a href="01_first.html#verdict-{anchor}">' in row
        assert row.count("<td>") == 4
        assert "$" not in row
        assert row.count("<details>") == row.count("</details>") <= 1
        assert f'id="verdict-{anchor}"' in judged[id]._repr_mimebundle_()["text/html"]
    assert '<span class="math inline">\\varepsilon^{-|I| d / E}</span>' in html


def test_prose_may_speak_of_judges():
    assert verdicts.hidden_ids(notebook(markdown("judge(x)")), "t") == []
