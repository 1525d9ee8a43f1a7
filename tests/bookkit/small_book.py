"""A small book of two chapters to try the tools on: real kernels, real Sphinx, a ledger of two claims."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookkit.project import Project

CONFIG = """\
title: A small book
author: Testers
copyright: "2026"
only_build_toc_files: true
exclude_patterns: [".*", "**/.*"]
execute:
  execute_notebooks: "off"
bibtex_bibfiles: [book/references.bib]
sphinx:
  config:
    extensions: [sphinx_togglebutton, myst_nb, jupyter_book, sphinx_comments, sphinx_external_toc, sphinx_book_theme,
      sphinxcontrib.bibtex, sphinx_proof, sphinx_exercise]
    html_context: {default_mode: light}
"""
TOC = """\
format: jb-book
root: book/index
parts:
  - caption: Chapters
    numbered: true
    chapters:
      - file: book/01_first
      - file: book/02_second
  - caption: Reference
    chapters:
      - file: book/scoreboard
"""
PACKAGE = '''\
"""A stand-in for the package that chapters import."""

__version__ = "9.9"


def double(x):
    return 2 * x


def judge(id):
    from IPython.display import publish_display_data

    card = {"id": id, "chapter": int(id[1:]), "verdict": "exact", "measured": "0"}
    publish_display_data({"text/plain": f"{id}: exact", "application/vnd.manyheads.verdict+json": card})
'''
REFERENCES = """\
@article{shannon1948,
  author = {Shannon, Claude E.},
  title = {A Mathematical Theory of {Communication}},
  journal = {Bell System Technical Journal},
  year = {1948},
  doi = {10.1002/j.1538-7305.1948.tb01338.x},
}
"""
PARAMETERS = """\
import os

profile = os.environ.get("MANYHEADS_PROFILE", "quick")
seed = 0"""
EXPLORER = """\
import ipywidgets as W
from IPython.display import display

values = [1, 2, 4]
panels = [W.HTML(f'<p role="img" aria-label="state {v}">picture of {manyheads.double(v)}</p>') for v in values]
slider = W.SelectionSlider(options=[(str(v), i) for i, v in enumerate(values)], index=0, description="heads")
stack = W.Stack(panels, selected_index=0)
W.jslink((slider, "index"), (stack, "selected_index"))
box = W.VBox([slider, stack])
hidden = [W.IntSlider() for _ in range(3)]
W.jslink((hidden[0], "value"), (hidden[1], "value"))
bundle = {k: v for k, v in box._repr_mimebundle_().items() if "widget" in k}
display({**bundle, "text/plain": "explorer", "text/html": "<p>static picture</p>"}, raw=True)"""
TEXT = """\
## Statement

```{math}
:label: eq-double
y = 2 x
```

````{prf:theorem} Doubling
:label: thm-double
By {eq}`eq-double`, see {cite:t}`shannon1948`.
```{math}
y \\ge x
```
````

```{exercise}
:label: ex-double
Double it.
```

```{solution} ex-double
:class: dropdown
Use {prf:ref}`thm-double`. The next chapter is [there](02_second.ipynb).
```"""


def markdown(source: str) -> nbformat.NotebookNode:
    return new_markdown_cell(source)


def code(source: str, *tags: str) -> nbformat.NotebookNode:
    return new_code_cell(source, metadata={"tags": list(tags)} if tags else {})


def notebook(*cells: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook with ids that do not change from test to test."""
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return new_notebook(cells=list(cells))


def chapter_one(*more: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return notebook(
        markdown("# First things\n\n<!-- facts -->\n\nHello."),
        code(PARAMETERS, "parameters"),
        code("import manyheads\n\nprint(profile, seed, manyheads.double(21))"),
        code(EXPLORER),
        markdown(TEXT),
        code('manyheads.judge("A1")'),
        *more,
    )


def chapter_two(*more: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return notebook(
        markdown("# Second things\n\n<!-- facts -->"),
        code(PARAMETERS.replace("\nseed = 0", ""), "parameters"),
        code('import manyheads\n\nmanyheads.judge("B2")'),
        *more,
    )


def write_notebook(path: Path, nb: nbformat.NotebookNode) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, path)


def make_project(root: Path) -> Project:
    """Write the small book below ``root``."""
    files = {
        "_config.yml": CONFIG,
        "_toc.yml": TOC,
        "requirements.txt": "torch==2.13.0\n",
        "claims.toml": "[A1]\n",
        "pyproject.toml": '[project]\nname = "small"\nversion = "1"\ndependencies = ["torch>=2", "ipywidgets>=7.7"]\n',
        "src/manyheads/__init__.py": PACKAGE,
        "recordings/run.json": json.dumps({"loss": [1.0]}),
        "book/index.md": "# A small book\n\n<!-- chapter-table -->\n\n```{bibliography}\n```\n",
        "book/scoreboard.md": "# Scoreboard\n",
        "book/references.bib": REFERENCES,
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(content), encoding="utf-8")
    write_notebook(root / "book/01_first.ipynb", chapter_one())
    write_notebook(root / "book/02_second.ipynb", chapter_two())
    return Project(root)


class SmallLedger:
    """The ledger of the small book: claim A1 of chapter 1, claim B2 of chapter 2."""

    def __init__(self):
        self.claims = {"A1": 1, "B2": 2}

    def check(self, verdicts, chapters):
        counts = Counter(verdict["id"] for verdict in verdicts)
        problems = [f"unknown claim id {id}" for id in counts if id not in self.claims]
        problems += [f"{id} is judged {counts[id]} times" for id in self.claims if counts[id] > 1]
        return problems + [f"{id} is not judged" for id, c in self.claims.items() if c in chapters and not counts[id]]

    def scoreboard(self, verdicts, chapters):
        return "\n".join(["# Scoreboard", "", *(f"- {v['id']}: {v['verdict']}" for v in verdicts)])
