import errno
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from bookkit import cli, pipeline
from bookkit.errors import BookError
from bookkit.project import Project
from bookkit.site import vendor

SOURCE = Path(cli.__file__).parents[1]


@pytest.fixture
def calls(monkeypatch):
    """What the command line asks of the steps."""
    seen = []

    def step(name):
        def note(*args, **options):
            seen.append((name, tuple(arg for arg in args if not isinstance(arg, Project)), options))

        return note

    for name in ("build", "refresh", "check", "clean", "record", "write_colab"):
        monkeypatch.setattr(pipeline, name, step(name))
    monkeypatch.setattr(vendor, "fetch", lambda project: seen.append(("vendor", (), {})))
    return seen


def bookkit(project, *arguments):
    return cli.main(["--root", str(project.root), *arguments])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["build"], ("build", (), {"only": [], "given": {}, "use_cache": True})),
        (
            ["build", "--only", "1", "--profile", "gpu", "-p", "seed", "3", "--no-cache"],
            ("build", (), {"only": ["1"], "given": {"seed": 3, "profile": "gpu"}, "use_cache": False}),
        ),
        (["refresh", "--only", "2"], ("refresh", (), {"only": ["2"], "use_cache": True})),
        (["check"], ("check", (), {})),
        (["vendor"], ("vendor", (), {})),
        (["record", "budgets"], ("record", ("budgets",), {})),
        (["clean"], ("clean", (), {})),
    ],
)
def test_commands(project, calls, arguments, expected):
    assert bookkit(project, *arguments) == 0
    assert calls == [expected]


def test_copies_go_where_they_are_wanted(project, calls, tmp_path):
    bookkit(project, "colab")
    bookkit(project, "colab", "--out", str(tmp_path))
    assert [args for _, args, _ in calls] == [(project.build / "colab",), (tmp_path,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "--profile", "quik"], "error: parameter profile: unknown profile 'quik'; did you mean 'quick'"),
        (["build", "-p", "widht", "3"], "error: unknown parameter 'widht'"),
        (["build", "--profile", "gpu", "-p", "profile", "full"], "given twice"),
        (["serve"], "run 'make book' first"),
    ],
)
def test_expected_failures_exit_with_one_and_no_traceback(project, calls, capsys, arguments, message):
    assert bookkit(project, *arguments) == 1
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.err + shown.out
    assert calls == []


def test_unexpected_failures_are_not_hidden(project, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("a bug")

    monkeypatch.setattr(pipeline, "check", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        bookkit(project, "check")


def test_interrupting(project, monkeypatch, capsys):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "check", interrupted)
    assert bookkit(project, "check") == 130
    assert "interrupted" in capsys.readouterr().err


def test_what_the_system_refuses_is_one_line(project, monkeypatch, capsys):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device", str(project.html))

    monkeypatch.setattr(pipeline, "check", full)
    assert bookkit(project, "check") == 1
    assert capsys.readouterr().err == f"error: {project.html}: No space left on device; free some space\n"


def test_record_passes_on_what_is_wrong_with_a_name(project, monkeypatch):
    recorder = types.ModuleType("manyheads.experiments.recorder")

    def record(name, folder):
        assert folder == project.build / "points"  # wherever the command was given
        raise ValueError(f"unknown recording {name!r}; known: budgets")

    recorder.record = record
    experiments = types.ModuleType("manyheads.experiments")
    experiments.recorder = recorder
    monkeypatch.setitem(sys.modules, "manyheads.experiments", experiments)
    with pytest.raises(BookError, match="unknown recording 'budget'; known: budgets"):
        pipeline.record(project, "budget")


def run(*arguments, cwd, path=(), **variables):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, SOURCE])), **variables}
    command = [sys.executable, "-m", "bookkit", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_another_manyheads_on_the_path_is_not_taken(project, tmp_path):
    (tmp_path / "manyheads.py").write_text("raise ImportError('an unrelated package')")
    done = run("clean", cwd=project.root, path=[tmp_path])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_tools_of_another_checkout_refuse(project, tmp_path):
    """They would publish the other checkout's ledger."""
    shutil.copytree(SOURCE, tmp_path / "old")
    (project.source / "bookkit").mkdir()
    done = run("clean", cwd=project.root, path=[tmp_path / "old"])
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"error: .*{tmp_path}/old/bookkit, .*{project.root} .*unset PYTHONPATH.*\n", done.stderr)


@pytest.mark.slow
def test_a_reader_who_has_seen_enough(project):
    code = (
        "import sys; from bookkit import cli, pipeline; "
        "pipeline.check = lambda project: [print('line') for _ in range(10**5)]; sys.exit(cli.main(['check']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=project.root, env=environment, stdout=-1, stderr=-1, text=True) as running:
        assert running.stdout.readline() == "line\n"
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "iso8859-9", "utf-8"])
def test_a_title_that_the_terminal_cannot_show(project, encoding):
    code = (
        "import sys; from bookkit import cli, pipeline; "
        "pipeline.check = lambda project: print('1  Schöner ş'); sys.exit(cli.main(['check']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], cwd=project.root, env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == "1  Schöner ş\n".encode(encoding, errors="backslashreplace")


@pytest.mark.slow
def test_as_a_program(project, tmp_path):
    shown = run("--help", cwd=tmp_path)
    assert shown.returncode == 0
    for command in ("build", "refresh", "check", "vendor", "colab", "serve", "record", "clean"):
        assert f"    {command} " in shown.stdout
    outside = run("check", cwd=tmp_path)
    assert (outside.returncode, outside.stdout) == (1, "")
    assert outside.stderr.startswith(f"error: no book in {tmp_path}")
    assert len(outside.stderr.splitlines()) == 1
    assert run("no-such-command", cwd=tmp_path).returncode == 2
