"""The first cell of a Colab copy, which brings the package.

It unpacks the package from a zip in the notebook, laid out like the checkout, into a temporary folder. Only modules
that are missing are installed, without a version, so that Colab's own torch and numpy stay in place.
"""

from __future__ import annotations

import base64
import io
import re
import textwrap
import zipfile

import nbformat
from nbformat import NotebookNode

from bookkit.errors import BookError
from bookkit.project import Project, files_under

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


def cell(project: Project, code: str) -> NotebookNode:
    """Return the cell for a chapter whose code is ``code``."""
    packed = "\n".join(textwrap.wrap(base64.b64encode(bundle(project, code)).decode(), 120))
    needed = [name.replace("-", "_") for name in project.requirements()]
    made = nbformat.v4.new_code_cell(_SETUP.format(bundle=packed, needed=needed), id="colab-setup")
    made.metadata.update({"cellView": "form", "tags": ["hide-input"]})
    return made


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
