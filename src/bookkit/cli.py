"""The command line, ``python -m bookkit``."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bookkit import pipeline
from bookkit.errors import BookError, in_words
from bookkit.notebooks import parameters
from bookkit.project import Project
from bookkit.site import serve, vendor


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code: 0, 1 for an expected failure, 2 for wrong usage, 130 when interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter of a title shows its number
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(argv)
    try:
        project = Project.find(options.root)
        _refuse_other_checkouts(project)
        options.run(project, options)
    except BrokenPipeError:  # whoever read along, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the rest goes nowhere, without complaint
        return 1
    except (BookError, OSError) as error:
        print(f"error: {in_words(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; what was complete is kept", file=sys.stderr)
        return 130
    return 0


def _refuse_other_checkouts(project: Project) -> None:
    """A checkout that brings these tools is built with its own: others would judge it by another ledger."""
    ours, own = Path(__file__).resolve().parent, project.source / "bookkit"
    if own.is_dir() and not own.samefile(ours):
        raise BookError(
            f"these tools come from {ours}, but the book in {project.root} brings its own: "
            "unset PYTHONPATH, and use make or the .venv of that checkout"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bookkit", description="Execute, check and publish the book.")
    parser.add_argument("--root", metavar="DIR", help="the checkout; found from the current folder when left out")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    build = commands.add_parser("build", help="execute the chapters and build the site", description=_SCHEMA)
    _add_chapters(build)
    build.add_argument("--profile", metavar="NAME", help="short for -p profile NAME (default: quick)")
    build.add_argument("-p", dest="given", nargs=2, metavar=("NAME", "VALUE"), action="append", default=[],
                       help="run the chapters with this parameter; may be repeated")  # fmt: skip
    build.set_defaults(run=_build)

    refresh = commands.add_parser("refresh", help="execute quickly and write the committed notebooks and scoreboard")
    _add_chapters(refresh)
    refresh.set_defaults(run=lambda p, o: pipeline.refresh(p, only=o.only, use_cache=not o.no_cache))

    check = commands.add_parser("check", help="are the committed notebooks and the scoreboard in order? runs nothing")
    check.set_defaults(run=lambda p, o: pipeline.check(p))

    fetch = commands.add_parser("vendor", help="fetch the scripts that pages need")
    fetch.set_defaults(run=lambda p, o: vendor.fetch(p) and print(f"Browser scripts are in {p.vendor}"))

    copies = commands.add_parser("colab", help="write self-contained copies of the committed notebooks for Colab")
    copies.add_argument("--out", metavar="DIR", type=Path, help="where to (default: _build/colab)")
    copies.set_defaults(run=lambda p, o: pipeline.write_colab(p, o.out or p.build / "colab"))

    show = commands.add_parser("serve", help="show the built site in a browser on this machine")
    show.add_argument("--port", type=int, default=serve.PORT, help="default: %(default)s")
    show.set_defaults(run=lambda p, o: serve.serve(p, o.port))

    record = commands.add_parser("record", help="make or resume a recording with the full profile")
    record.add_argument("name", metavar="NAME")
    record.set_defaults(run=lambda p, o: pipeline.record(p, o.name))

    clean = commands.add_parser("clean", help="remove everything that can be made again")
    clean.set_defaults(run=lambda p, o: pipeline.clean(p))
    return parser


_SCHEMA = "Parameters: " + "; ".join(f"{name}: {p.meaning}" for name, p in parameters.SCHEMA.items()) + "."


def _add_chapters(command: argparse.ArgumentParser) -> None:
    command.add_argument("--only", metavar="CHAPTER", action="append", default=[],
                         help="a chapter's number or file stem; may be repeated")  # fmt: skip
    command.add_argument("--no-cache", action="store_true", help="execute even when nothing has changed")


def _build(project: Project, options: argparse.Namespace) -> None:
    given = list(options.given) + ([("profile", options.profile)] if options.profile else [])
    pipeline.build(project, only=options.only, given=parameters.parse(given), use_cache=not options.no_cache)
