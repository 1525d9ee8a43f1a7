"""Copies of the chapters that run in Colab by themselves: no repository address, no network for the package.

The first cell unpacks the package from a zip in the notebook, laid out like the checkout, into a temporary folder.
Only modules that are missing are installed, without a version, so that Colab's own torch and numpy stay in place.
"""

from __future__ import annotations

import base64
import io
import re
import textwrap
import zipfile
from collections.abc import Mapping
from copy import deepcopy

import nbformat
from nbformat import NotebookNode

from bookkit import citations
from bookkit.errors import BookError, NotebookError
from bookkit.labels import Labels
from bookkit.markdown import Plain, leftovers
from bookkit.normalise import text
from bookkit.project import Project, files_under
from bookkit.reading import GLUE
from bookkit.toc import Chapter

MAX_BYTES = 20_000_000  # larger notebooks do not open in Colab
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can hold; a real one would change the bytes

_SETUP = """\
#@title Set up: unpack the book's package (run me first)
import base64, importlib.util, io, subprocess, sys, tempfile, zipfile
from pathlib import Path

BUNDLE = \"\"\"
{bundle}
\"\"\"
folder = tempfile.mkdtemp(prefix="manyheads-")
zipfile.ZipFile(io.BytesIO(base64.b64decode(BUNDLE))).extractall(folder)
sys.path.insert(0, str(Path(folder) / "src"))
missing = [name for name in {needed!r} if importlib.util.find_spec(name) is None]
if missing:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)

import manyheads, torch

device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
print(f"manyheads {{manyheads.__version__}}, torch {{torch.__version__}}, device: {{device}}")"""


def copies(project: Project, notebooks: Mapping[Chapter, NotebookNode]) -> dict[str, bytes]:
    """Return the copies by file name.

    Parameters
    ----------
    project
        The checkout, for the package, the ledger, the recordings and the bibliography.
    notebooks
        Every chapter, executed and normalised without widgets: their outputs are in the copies too.

    Raises
    ------
    NotebookError
        When MyST is left in a copy, or a copy is too large for Colab.
    """
    labels = Labels.collect({chapter.number: _markdown(nb) for chapter, nb in notebooks.items()})
    labels.names |= {chapter.stem: chapter.title for chapter in notebooks}
    works = citations.read(project.bibliographies())
    return {
        chapter.path.name: _copy(project, chapter, nb, Plain(chapter.number, labels, works, glued(nb)))
        for chapter, nb in notebooks.items()
    }


def glued(nb: NotebookNode) -> dict[str, str]:
    """Return the values that the chapter's cells published for its prose, by name."""
    return {
        output.metadata["scrapbook"]["name"]: re.sub(r"^(['\"])(.*)\1$", r"\2", output.data[GLUE])
        for cell in nb.cells
        for output in cell.get("outputs", [])
        if GLUE in output.get("data", {}) and "scrapbook" in output.metadata
    }


def bundle(project: Project, code: str) -> bytes:
    """Return the zip that a copy carries: the package, the ledger and the recordings, laid out as in the checkout.

    Small recordings (JSON) are always in it. Larger files, such as the trained models in ``recordings/zoo/``, are in it
    only when ``code``, the chapter's code, mentions their folder. Equal contents give equal bytes.
    """
    root = project.root
    files = files_under(project.source / "manyheads")
    files += [path for path in [root / "claims.toml"] if path.is_file()]
    for path in files_under(root / "recordings"):
        if path.suffix == ".json" or re.search(rf"\b{re.escape(path.parent.name)}\b", code):
            files.append(path)
    if not any(path.name == "__init__.py" for path in files):
        raise BookError(f"{project.source / 'manyheads'} has no package for the Colab copies to carry")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in files:
            entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH)
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=9)
    return content.getvalue()


def _copy(project: Project, chapter: Chapter, nb: NotebookNode, plain: Plain) -> bytes:
    nb = deepcopy(nb)
    code = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "code")
    found, cells = [], [_setup(bundle(project, code), project.requirements())]
    for number, cell in enumerate(nb.cells, start=1):
        if cell.cell_type == "markdown":
            cell.source = plain.convert(cell.source)
            found += [f"cell {number} still has {rest} in its Colab copy" for rest in leftovers(cell.source)]
        if cell.source.strip():
            cells.append(cell)
    nb.cells = cells
    nb.metadata.update({"accelerator": "GPU", "colab": {"name": chapter.path.name, "provenance": []}})
    content = text(nb).encode()
    if len(content) > MAX_BYTES:
        found.append(f"its Colab copy has {len(content) / 1e6:.0f} MB; Colab opens up to {MAX_BYTES / 1e6:.0f} MB")
    if found:
        raise NotebookError(chapter.stem, found)
    return content


def _setup(archive: bytes, requirements: list[str]) -> NotebookNode:
    packed = "\n".join(textwrap.wrap(base64.b64encode(archive).decode(), 120))
    needed = [name.replace("-", "_") for name in requirements]
    cell = nbformat.v4.new_code_cell(_SETUP.format(bundle=packed, needed=needed), id="colab-setup")
    cell.metadata.update({"cellView": "form", "tags": ["hide-input"]})
    return cell


def _markdown(nb: NotebookNode) -> list[str]:
    return [cell.source for cell in nb.cells if cell.cell_type == "markdown"]
