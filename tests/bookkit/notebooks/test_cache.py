import json

import pytest
from nbformat.v4 import new_output

from bookkit import pipeline
from bookkit.errors import NotebookError
from bookkit.notebooks import cache, toc
from bookkit.notebooks.cache import KEEP, SHAPING, Cache
from bookkit.notebooks.environment import DEVICES
from bookkit.notebooks.execute import Run
from bookkit.notebooks.facts import Facts
from tests.bookkit.small_book import chapter_one, code, write_notebook

QUICK = {"profile": "quick", "seed": 0}


@pytest.fixture
def chapter(project):
    return toc.chapters(project)[0]


def run_of(chapter, profile="quick"):
    nb = chapter.read()
    for count, cell in enumerate((cell for cell in nb.cells if cell.cell_type == "code"), start=1):
        cell.execution_count = count
    return Run(chapter, nb, Facts("2026-01-02", 1.5, "2 CPU cores", "3.11.1", "2.13.0", profile))


@pytest.fixture
def executions(monkeypatch):
    """Replaces the kernel; counts how often a chapter would have been executed."""
    calls = []

    def fake(project, chapter, parameters):
        calls.append((chapter.number, dict(parameters)))
        return run_of(chapter, parameters["profile"])

    monkeypatch.setattr(pipeline, "execute", fake)
    return calls


def execute_all(project, given=None, **options):
    return pipeline.run_chapters(project, toc.chapters(project), given or {}, **options)


def append(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + content)


def edit_cell(project):
    nb = chapter_one()
    nb.cells[2].source += "\n# a change"
    write_notebook(project.book / "01_first.ipynb", nb)


def edit(part):
    """Change the metadata of a chapter or of one of its cells, as part(notebook) is."""

    def change(project):
        nb = chapter_one()
        part(nb)["bookkit"] = {"needs": "a GPU"}
        write_notebook(project.book / "01_first.ipynb", nb)

    return change


CHANGES = {
    "source": lambda p: append(p.root / "src/manyheads/__init__.py", "\n# a change\n"),
    "new module": lambda p: append(p.root / "src/manyheads/models/new.py", ""),
    "recording": lambda p: append(p.root / "recordings/run.json", " "),
    "new recording": lambda p: append(p.root / "recordings/other.json", "{}"),
    "requirements": lambda p: append(p.root / "requirements.txt", "numpy==2.0\n"),
    "ledger": lambda p: append(p.root / "claims.toml", "# a change\n"),
    "cell": edit_cell,
    "metadata": edit(lambda nb: nb.metadata),
    "metadata of a cell": edit(lambda nb: nb.cells[2].metadata),
    "tag": lambda p: write_notebook(p.book / "01_first.ipynb", chapter_one(code("", "slow"))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_could_matter_runs_the_chapter_again(project, executions, change):
    execute_all(project)
    execute_all(project)
    assert sorted(number for number, _ in executions) == [1, 2]
    CHANGES[change](project)
    execute_all(project)
    assert 1 in [number for number, _ in executions[2:]]


def test_a_change_in_one_chapter_leaves_the_others(project, executions):
    execute_all(project)
    edit_cell(project)
    execute_all(project)
    assert sorted(n for n, _ in executions[:2]) == [1, 2]
    assert [n for n, _ in executions[2:]] == [1]


def test_outputs_and_traces_of_a_run_do_not_matter(project, chapter):
    before = Cache(project).key(chapter, QUICK)
    nb = run_of(chapter).nb
    nb.metadata.update(papermill={"duration": 1}, kernelspec={"name": "mine", "display_name": "Mine"}, widgets={})
    nb.metadata.language_info = {"name": "python", "version": "3.99"}
    nb.cells[2].metadata.update(execution={"iopub.execute_input": "now"}, papermill={"duration": 1})
    write_notebook(chapter.path, nb)
    assert Cache(project).key(chapter, QUICK) == before


def test_parameters_and_python_matter(project, chapter, monkeypatch):
    keys = {
        Cache(project).key(chapter, {"profile": profile, "seed": s}) for profile in ("quick", "gpu") for s in (0, 1)
    }
    assert len(keys) == 4
    monkeypatch.setattr("platform.python_version", lambda: "3.99.0")
    assert Cache(project).key(chapter, QUICK) not in keys


@pytest.mark.parametrize("name", DEVICES)
def test_which_part_of_the_machine_computes_matters(project, chapter, monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    before = Cache(project).key(chapter, QUICK)
    monkeypatch.setenv(name, "other")
    assert Cache(project).key(chapter, QUICK) != before


@pytest.mark.parametrize("name", ["PATH", "HOME", "LC_ALL", "TZ", "PYTHONPATH", "MPLBACKEND", "COLUMNS"])
def test_variables_that_a_chapter_does_not_see_do_not_matter(project, chapter, monkeypatch, name):
    before = Cache(project).key(chapter, QUICK)
    monkeypatch.setenv(name, "other")
    assert Cache(project).key(chapter, QUICK) == before


def test_another_build_of_torch_matters(project, chapter, monkeypatch):
    """One pin, ``torch==2.13.0``, is met by builds for the CPU and for every version of CUDA."""
    keys = set()
    for build in ("2.13.0+cpu", "2.13.0+cu130"):
        monkeypatch.setattr(cache, "version", {"torch": build, "ipywidgets": "8"}.__getitem__)
        keys.add(Cache(project).key(chapter, QUICK))
    assert len(keys) == 2


def test_every_module_that_shapes_a_run_is_in_the_key(project, chapter, monkeypatch):
    before = Cache(project).key(chapter, QUICK)
    for name in SHAPING:
        monkeypatch.setattr(cache, "SHAPING", [other for other in SHAPING if other != name])
        assert Cache(project).key(chapter, QUICK) != before


def test_what_would_be_refused_is_not_stored(project, chapter, monkeypatch):
    def warns(project, chapter, parameters):
        run = run_of(chapter)
        run.nb.cells[2].outputs = [new_output("stream", name="stderr", text="Matplotlib created a temporary folder")]
        return run

    monkeypatch.setattr(pipeline, "execute", warns)
    with pytest.raises(NotebookError, match=r"cell 3 writes to stderr.*Matplotlib created.*mend what warns, or print"):
        execute_all(project)
    assert not list(project.build.rglob("*.ipynb"))
    monkeypatch.setattr(pipeline, "execute", lambda project, chapter, parameters: run_of(chapter))
    execute_all(project)  # on a machine that does not warn


def test_no_cache_executes_and_stores(project, executions):
    execute_all(project)
    execute_all(project, use_cache=False)
    assert len(executions) == 4
    execute_all(project)
    assert len(executions) == 4


def test_a_stored_run_comes_back_as_it_was(project, chapter):
    stored, run = Cache(project), run_of(chapter)
    stored.store(run, "key")
    loaded = stored.load(chapter, "key")
    assert (loaded.nb, loaded.facts, loaded.cached) == (run.nb, run.facts, True)
    assert stored.load(chapter, "other") is None


def damage_json(notebook, facts):
    facts.write_text(facts.read_text()[:20])


def damage_facts(notebook, facts):
    facts.write_text(json.dumps({"sha256": "0"}))


def forget_a_fact(notebook, facts):
    stored = json.loads(facts.read_text())
    del stored["device"]
    facts.write_text(json.dumps(stored))


def mistype_a_fact(notebook, facts):
    facts.write_text(json.dumps(json.loads(facts.read_text()) | {"seconds": "soon"}))


def nest_deeply(notebook, facts):
    facts.write_text("[" * 100_000)


def no_text(notebook, facts):
    facts.write_bytes(b"\xff\xfe")


def truncate(notebook, facts):
    notebook.write_text(notebook.read_text()[:-20])


def edit_output(notebook, facts):
    notebook.write_text(notebook.read_text().replace("First things", "Other things"))


def not_an_object(notebook, facts):
    facts.write_text("[]")


DAMAGES = [damage_json, damage_facts, forget_a_fact, mistype_a_fact, nest_deeply, no_text, truncate, edit_output]


@pytest.mark.parametrize("damage", [*DAMAGES, not_an_object])
def test_a_damaged_entry_is_executed_again(project, executions, capsys, damage):
    execute_all(project)
    [facts] = (project.build / "executed/01_first").glob("*.json")
    damage(facts.with_suffix(".ipynb"), facts)
    execute_all(project)
    assert sorted(n for n, _ in executions[:2]) == [1, 2]
    assert [n for n, _ in executions[2:]] == [1]
    assert "01_first: the stored run is damaged" in capsys.readouterr().out
    execute_all(project)
    assert len(executions) == 3


def test_a_missing_half_is_no_entry(project, executions):
    execute_all(project)
    for path in (project.build / "executed/01_first").glob("*.ipynb"):
        path.unlink()
    execute_all(project)
    assert len(executions) == 3


def test_old_runs_are_dropped(project, chapter):
    stored = Cache(project)
    for number in range(KEEP + 2):
        stored.store(run_of(chapter), f"key{number}")
    names = {path.name for path in (stored.folder / chapter.stem).iterdir()}
    assert names == {f"key{n}{suffix}" for n in range(2, KEEP + 2) for suffix in (".ipynb", ".json")}


def test_a_half_executed_notebook_is_not_stored(project, chapter, monkeypatch):
    monkeypatch.setattr(pipeline, "execute", lambda project, chapter, parameters: Run(chapter, chapter.read(), None))
    with pytest.raises(ValueError, match="was not executed"):
        execute_all(project)
    assert not project.build.exists()
