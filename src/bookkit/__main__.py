"""Run the command line: ``python -m bookkit``."""

from bookkit.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
