"""The steps in order: execute, judge, normalise, publish."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nbformat import NotebookNode

from bookkit.colab import copies
from bookkit.errors import BookError
from bookkit.notebooks import parameters, toc, verdicts
from bookkit.notebooks.cache import Cache
from bookkit.notebooks.execute import Run, execute
from bookkit.notebooks.facts import cores
from bookkit.notebooks.normalise import normalise, problems, text
from bookkit.notebooks.toc import Chapter
from bookkit.project import Project, remove
from bookkit.site import sphinx, stage, vendor
from manyheads.files import write_whole


def run_chapters(
    project: Project,
    chapters: Sequence[Chapter],
    given: Mapping[str, str | int],
    *,
    use_cache: bool = True,
) -> dict[Chapter, Run]:
    """Execute chapters side by side, one a core, or take what is stored; print one line for each, in book order.

    All parameters are checked before the first chapter runs. After a failure no further chapter starts; what ran is
    stored, unless a page or a committed notebook could not be made from it: it would be refused again for ever.
    """
    plans = {chapter: parameters.resolve(chapter.read(), str(chapter), given) for chapter in chapters}
    cache = Cache(project)
    keys = {chapter: cache.key(chapter, plan) for chapter, plan in plans.items()}

    def run(chapter: Chapter) -> Run:
        stored = cache.load(chapter, keys[chapter]) if use_cache else None
        if stored:
            return stored
        fresh = execute(project, chapter, plans[chapter])
        for keep in (True, False):
            normalise(fresh.nb, chapter.stem, keep_widgets=keep)
        cache.store(fresh, keys[chapter])
        return fresh

    runs = {}
    with ThreadPoolExecutor(cores()) as pool:  # threads: the work is in the kernels, which are processes
        waiting = {chapter: pool.submit(run, chapter) for chapter in chapters}
        try:
            for chapter, future in waiting.items():
                runs[chapter] = future.result()
                print(runs[chapter], flush=True)
        except KeyboardInterrupt:
            from bookkit.notebooks.kernel import end_all

            end_all()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return runs


def build(
    project: Project,
    *,
    only: Sequence[str] = (),
    given: Mapping[str, str | int] | None = None,
    use_cache: bool = True,
    ledger: verdicts.Ledger | None = None,
) -> Path:
    """Execute the chapters and build the site; return its folder.

    With ``only``, the other chapters show what is committed.
    """
    started = time.perf_counter()
    sphinx.check_place(project)
    chapters = toc.chapters(project)
    chosen = toc.select(chapters, only)
    runs = run_chapters(project, chosen, given or {}, use_cache=use_cache)
    scripts = vendor.fetch(project)
    executed = {chapter: runs[chapter].nb if chapter in runs else chapter.read() for chapter in chapters}
    plain = {chapter: normalise(nb, chapter.stem) for chapter, nb in executed.items()}
    scoreboard = verdicts.scoreboard(plain, ledger or _ledger())
    packed = copies.make(project, plain)
    staged = stage.files(
        project,
        {chapter: normalise(nb, chapter.stem, keep_widgets=True) for chapter, nb in executed.items()},
        {chapter: run.facts for chapter, run in runs.items()},
        scoreboard,
        scripts,
    )
    extra = {f"colab/{name}": content for name, content in packed.items()} | {".nojekyll": b""}
    built = sphinx.publish(project, staged, extra)
    print(f"Site: {'built' if built else 'unchanged'}; {time.perf_counter() - started:.0f} s in all")
    print(f"The book is in {project.html / 'index.html'}\nOpen it with 'make serve', at http://127.0.0.1:8000/")
    return project.html


def refresh(
    project: Project,
    *,
    only: Sequence[str] = (),
    use_cache: bool = True,
    ledger: verdicts.Ledger | None = None,
) -> list[Path]:
    """Execute chapters with the quick profile and write the committed notebooks and the scoreboard.

    Nothing is written unless every chapter ran and every claim adds up. Returns the files that changed.
    """
    chapters = toc.chapters(project)
    given = {"profile": parameters.DEFAULT_PROFILE}
    runs = run_chapters(project, toc.select(chapters, only), given, use_cache=use_cache)
    notebooks = {c: normalise(runs[c].nb if c in runs else c.read(), c.stem) for c in chapters}
    wanted = {chapter.path: text(nb) for chapter, nb in notebooks.items() if chapter in runs}
    wanted[project.root / stage.SCOREBOARD] = verdicts.scoreboard(notebooks, ledger or _ledger())
    changed = [path for path, content in wanted.items() if not _holds(path, content)]
    for path in changed:
        write_whole(path, wanted[path])
        print(f"wrote {path.relative_to(project.root)}")
    if not changed:
        print("the committed notebooks and the scoreboard are up to date")
    return changed


def check(project: Project, *, ledger: verdicts.Ledger | None = None) -> None:
    """Refuse committed notebooks that are not what ``refresh`` would write from them, and a stale scoreboard.

    Nothing is executed: whether the stored outputs are still what the code gives is for nbval to say.
    """
    found: list[str] = []
    notebooks: dict[Chapter, NotebookNode] = {}
    for chapter in toc.chapters(project):
        nb = notebooks[chapter] = chapter.read()
        reasons = problems(nb)
        try:
            parameters.assigned(nb, str(chapter))
        except BookError as error:
            reasons.append(str(error))
        if not reasons and not _holds(chapter.path, text(normalise(nb, chapter.stem))):
            reasons.append("is not in the form that 'python -m bookkit refresh' writes")
        found += [f"{chapter.path.relative_to(project.root)}: {reason}" for reason in reasons]
    ledger = ledger or _ledger()
    claims = verdicts.problems(notebooks, ledger)
    found += claims
    if not claims and not _holds(project.root / stage.SCOREBOARD, verdicts.scoreboard(notebooks, ledger)):
        found.append(f"{stage.SCOREBOARD}: differs from the verdicts in the notebooks")
    if found:
        lines = [f"  - {reason}" for reason in found]
        raise BookError("\n".join(["not fit to be committed:", *lines, "'python -m bookkit refresh' makes them anew"]))
    print(f"{len(notebooks)} notebooks and the scoreboard are in order")


def write_colab(project: Project, folder: Path) -> list[Path]:
    """Write Colab copies of the committed notebooks into ``folder``."""
    notebooks = {chapter: normalise(chapter.read(), chapter.stem) for chapter in toc.chapters(project)}
    paths = [write_whole(folder / name, content) for name, content in copies.make(project, notebooks).items()]
    for path in paths:
        print(f"wrote {path}")
    return paths


def record(project: Project, name: str) -> None:
    """Make or resume a recording with the full profile; :mod:`manyheads.experiments` knows how."""
    from manyheads.experiments import recorder

    try:
        recorder.record(name, project.build / "points")
    except ValueError as error:
        raise BookError(str(error)) from None


def clean(project: Project) -> None:
    """Remove everything that can be made again."""
    remove(project.build)
    print(f"removed {project.build}")


def _holds(path: Path, content: str) -> bool:
    return path.is_file() and path.read_bytes() == content.encode()


def _ledger() -> verdicts.Ledger:
    from manyheads.reporting import claims

    return claims
