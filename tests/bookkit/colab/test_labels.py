"""What references read as in the Colab copies: the numbers and words of the site, counted the same way."""

import re
import shutil
from collections import Counter
from dataclasses import replace

import nbformat
import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

from bookkit import pipeline
from bookkit.colab.labels import NUMBERED, Labels
from bookkit.colab.markdown import Plain
from bookkit.notebooks import toc
from tests.bookkit.small_book import SmallLedger, chapter_two, make_project, markdown, write_notebook

REFERENCE = re.compile(r"\{(?:prf:ref|eq|ref|numref)\}`(?:[^`]*<)?([^`<>]+)>?`")
NUMBERED_NAME = r"(?:[A-Z]\w+|Fig\.) \d+\.\d+|Solution to Exercise \d+\.\d+[^*<\n]*"
HEADING = re.compile(rf"^[> ]*(?:\*+|<summary>)({NUMBERED_NAME})|\\tag{{(\d+\.\d+)}}", flags=re.M)
NUMBER = re.compile(rf"{NUMBERED_NAME}|\(\d+\.\d+\)")


def sources(nb):
    return [cell.source for cell in nb.cells if cell.cell_type == "markdown"]


def labels_of(chapters):
    return Labels.collect({chapter.number: sources(chapter.read()) for chapter in chapters})


def words(html):
    return " ".join(BeautifulSoup(html, "html.parser").get_text().split())


def numbers(page):
    """The numbers that a page of the site shows, with the labels they belong to, in order."""
    shown = page.select(".caption-number, .eqno, .solution > .admonition-title")
    places = [number.find_parent(id=True)["id"].removeprefix("equation-") for number in shown]
    return [(place, words(str(number)).rstrip("#")) for place, number in zip(places, shown, strict=True)]


def references(page):
    """The references of a page: label and text. The heading of a solution refers to its exercise by itself."""
    links = page.select("a.reference.internal[href*='#']:not(.solution > .admonition-title > a)")
    return Counter((link["href"].partition("#")[2].removeprefix("equation-"), words(str(link))) for link in links)


def differences(html, chapters, labels):
    """Where the site and the copies for Colab refer to the same thing by different names.

    ``html`` is the folder of the built site with its copies; ``labels`` are what the copies call the labels.
    """
    found, at_labels = [], {}
    for chapter in chapters:
        page = BeautifulSoup(
            (html / "book" / f"{chapter.stem}.html").read_text(encoding="utf-8"), "html.parser"
        ).article
        copy = "\n".join(sources(nbformat.read(html / "colab" / f"{chapter.stem}.ipynb", 4)))
        plain = Plain(chapter.number, labels)
        copied = Counter(
            (reference[1], words(MarkdownIt().render(plain.convert(reference[0]))))
            for source in sources(chapter.read())
            for reference in REFERENCE.finditer(source)
        )
        on_site = Counter({key: n for key, n in references(page).items() if key[0] in labels.names})
        found += [f"{chapter}: the site has {label} as {text!r}, its copy has not" for label, text in on_site - copied]
        found += [f"{chapter}: its copy has {label} as {text!r}, the site has not" for label, text in copied - on_site]
        in_order = [number for _, number in numbers(page) if NUMBER.fullmatch(number)]
        headings = [kind or f"({equation})" for kind, equation in HEADING.findall(copy)]
        found += [f"{chapter}: {in_order} on the site, {headings} in its copy"] if in_order != headings else []
        at_labels |= dict(numbers(page))
    for label in labels.names:
        name = labels.of(label, numbered=True)
        if NUMBER.fullmatch(name) and name != at_labels.get(label):
            found.append(f"{label} is {name} in the copies and {at_labels.get(label)} on the site")
    return found


def shifted(labels, label):
    """The same labels, with one number one higher."""
    name = re.sub(r"\d+(?=\)?$)", lambda number: str(int(number[0]) + 1), labels.of(label, numbered=True))
    return replace(labels, names=labels.names | {label: name})


def read(*sources):
    return Labels.collect({2: sources})


def test_each_kind_is_counted_on_its_own():
    labels = read("```{prf:lemma}\n:label: a\n```\n```{prf:theorem}\n:label: b\n```", "```{prf:lemma}\n:label: c\n```")
    assert labels.names == {"a": "Lemma 2.1", "b": "Theorem 2.1", "c": "Lemma 2.2"}


def test_theorems_and_exercises_count_without_a_label_and_equations_only_with_one():
    labels = read("```{exercise}\n```\n```{exercise}\n:label: a\n```\n$$ x $$\n\n$$ y $$ (b)\n\n```{math}\nz\n```")
    assert labels.names == {"a": "Exercise 2.2", "b": "(2.1)"}


def test_a_solution_is_called_by_the_title_of_its_exercise_too():
    labels = read("```{solution} a\n:label: b\n```\n```{exercise} Try\n:label: a\n```")
    assert labels.names == {"a": "Exercise 2.1", "b": "Solution to Exercise 2.1 (Try)"}


def test_figures_and_tables_count_with_a_caption_or_a_label():
    picture, table = "```{{figure}} a.png\n{}\n```\n", "```{{table}} {}\n| a |\n|---|\n```\n"
    labels = read(
        picture.format("Dots.") + picture.format("") + picture.format(":name: a\n\nMore *dots*.\n\nA legend.")
    )
    assert (labels.of("a"), labels.of("a", numbered=True)) == ("More *dots*.", "Fig. 2.2")
    labels = read(table.format("") + table.format("Costs") + "(b)=\n" + table.format("Prices"))
    assert (labels.of("b"), labels.of("b", numbered=True)) == ("Prices", "Table 2.2")


def test_what_is_in_a_list_or_a_quote_counts_and_code_does_not():
    labels = read("- a\n\n  $$ x $$ (a)\n\n> $$ y $$ (b)\n\n```md\n$$ z $$ (c)\n```\n\n    $$ z $$ (d)\n\n$$ w $$ (e)")
    assert labels.names == {"a": "(2.1)", "b": "(2.2)", "e": "(2.3)"}


def test_a_target_names_what_follows_it():
    labels = read("(sec-a)=\n(sec-b)=\n<!-- note -->\n## Of heads ##\n\ntext\n\n(far)=\n\nno heading")
    assert labels.names == {"sec-a": "Of heads", "sec-b": "Of heads"}
    assert labels.of("thm-not_there") == "not there"


@pytest.fixture(scope="module")
def every_kind(tmp_path_factory):
    """The small book with everything that has a number in its second chapter, and a reference to each, built."""
    project = make_project(tmp_path_factory.mktemp("kinds") / "checkout")
    (project.book / "a.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    theorems = [kind for kind in NUMBERED if kind.startswith("prf:")]
    blocks = [f"```{{{kind}}} Its title\n:label: a-{kind[4:]}\nIt holds.\n```" for kind in theorems]
    blocks += ["```{prf:theorem}\nNo label.\n```", "```{prf:theorem}\n:label: next\nIt holds.\n```"]
    blocks += ["```{prf:theorem}\n:label: bare\n:nonumber:\nIt holds.\n```", "```{exercise}\nNo label.\n```"]
    blocks += ["```{exercise} Try\n:label: ex\nDo.\n```", "```{solution} ex\n:label: sol\nSee {eq}`eq-double`.\n```"]
    blocks += ["```{figure} a.svg\nNo label.\n```", "```{figure} a.svg\n:name: fig\nSome *dots*.\n```"]
    blocks += ["```{table} Costs\n:name: tab\n| a |\n|---|\n| b |\n```", "```{list-table} Prices\n* - a\n* - b\n```"]
    blocks += ["```{math}\nx\n```", "````{note}\n```{math}\n:label: eq-a\nx\n```\n````", "- a\n\n  $$ x $$ (eq-b)"]
    blocks += ["> a\n>\n> $$ x $$ (eq-c)", "(sec)=\n## A *soft* section\n\nThe text."]
    roles = [f"{{prf:ref}}`a-{kind[4:]}`" for kind in theorems]
    roles += ["{prf:ref}`next`", "{prf:ref}`bare`", "{prf:ref}`thm-double`", "{prf:ref}`as is <next>`", "{ref}`ex`"]
    roles += ["{ref}`sol`", "{ref}`fig`", "{numref}`fig`", "{numref}`see %s <fig>`", "{ref}`tab`", "{numref}`tab`"]
    roles += ["{eq}`eq-a`", "{eq}`eq-b`", "{eq}`eq-c`", "{ref}`sec`"]
    cells = [markdown("\n\n".join(blocks)), markdown(" and ".join(roles))]
    write_notebook(project.book / "02_second.ipynb", chapter_two(*cells))
    pipeline.build(project, ledger=SmallLedger())
    return project


@pytest.mark.slow
def test_the_copies_name_everything_as_the_site_does(every_kind):
    chapters = toc.chapters(every_kind)
    assert differences(every_kind.html, chapters, labels_of(chapters)) == []


@pytest.mark.slow
@pytest.mark.parametrize("label", ["a-lemma", "next", "ex", "fig", "tab", "eq-b", "eq-double"])
def test_a_shifted_number_is_found(every_kind, label):
    chapters = toc.chapters(every_kind)
    found = differences(every_kind.html, chapters, shifted(labels_of(chapters), label))
    assert len(found) >= 2
    assert all(label in difference for difference in found)


@pytest.mark.slow
def test_a_heading_with_another_number_is_found(every_kind, tmp_path):
    chapters = toc.chapters(every_kind)
    shutil.copytree(every_kind.html / "book", tmp_path / "book")
    shutil.copytree(every_kind.html / "colab", tmp_path / "colab")
    copy = tmp_path / "colab" / "02_second.ipynb"
    copy.write_text(copy.read_text().replace("**Lemma 2.1**", "**Lemma 2.2**"))
    [found] = differences(tmp_path, chapters, labels_of(chapters))
    assert found.startswith("chapter 2 (02_second): [")
