"""Fixtures: a small book of two chapters, fresh, or executed and built once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookkit import pipeline
from bookkit.notebooks import toc
from bookkit.notebooks.execute import Run
from bookkit.project import Project
from bookkit.site import vendor
from tests.bookkit.small_book import SmallLedger, make_project


@pytest.fixture(scope="session")
def ledger() -> SmallLedger:
    return SmallLedger()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The small book, fresh and not executed."""
    return make_project(tmp_path / "checkout")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, ledger: SmallLedger) -> Project:
    """The small book, built once. Tests read it and change nothing."""
    project = make_project(tmp_path_factory.mktemp("built") / "checkout")
    pipeline.build(project, ledger=ledger)
    return project


@pytest.fixture(scope="session")
def runs(built: Project) -> list[Run]:
    """The executed chapters of the built book."""
    return list(pipeline.run_chapters(built, toc.chapters(built), {}).values())


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No browser scripts to be had: builds use the defaults of Jupyter Book."""
    monkeypatch.setattr(vendor, "fetch", lambda project: None)
