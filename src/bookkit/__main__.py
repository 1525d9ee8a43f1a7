"""Run the command line: ``python -m bookkit``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # these tools' own manyheads, not one of PYTHONPATH
    from bookkit.cli import main

    raise SystemExit(main())
