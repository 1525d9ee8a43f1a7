"""Where the ledger and the recordings are: at the root of a checkout or Colab copy, or in an installed package."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def data_root() -> Path:
    """Return the folder that holds ``claims.toml`` and ``recordings/``.

    Raises
    ------
    FileNotFoundError
        When neither the installed package nor a checkout around it has the ledger.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package, package.parents[1]):
        if (folder / "claims.toml").is_file():
            return folder
    raise FileNotFoundError(
        f"claims.toml is neither in {package.name}/ nor at the root of a checkout around it: "
        "install the package with pip, or run from a complete clone"
    )
