import subprocess
from pathlib import Path

import pytest

from bookkit.notebooks import environment
from bookkit.notebooks.environment import DEVICES, PLACES, controlled

HOSTILE = {
    **{"HOME": "/nowhere", "XDG_CONFIG_HOME": "/nowhere", "XDG_CACHE_HOME": "/nowhere", "USER": "somebody"},
    **{"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "LC_NUMERIC": "de_DE", "LANGUAGE": "tr", "TZ": "Asia/Tokyo"},
    **{"COLUMNS": "40", "LINES": "9", "NO_COLOR": "1", "FORCE_COLOR": "1", "CLICOLOR": "0", "TERM": "dumb"},
    **{"PYTHONPATH": "/nowhere", "PYTHONWARNINGS": "always", "PYTHONSTARTUP": "/nowhere", "PYTHONHASHSEED": "7"},
    **{"PYTHONIOENCODING": "ascii", "PYTHONOPTIMIZE": "2", "PYTHONUTF8": "0", "PYTHONINSPECT": "1"},
    **{"MPLBACKEND": "none", "MPLCONFIGDIR": "/nowhere", "MATPLOTLIBRC": "/nowhere", "OMP_NUM_THREADS": "3"},
    **{"JUPYTER_PATH": "/nowhere", "JUPYTER_CONFIG_DIR": "/nowhere", "JUPYTER_RUNTIME_DIR": "/nowhere"},
    **{"IPYTHONDIR": "/nowhere", "DASK_SCHEDULER_ADDRESS": "tcp://x", "JOBLIB_TEMP_FOLDER": "/nowhere"},
    **{"LOKY_MAX_CPU_COUNT": "1", "MKL_NUM_THREADS": "4", "MANYHEADS_PROFILE": "full", "MANYHEADS_EXPLORE": "live"},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_variables_of_a_person_do_not_pass(project, tmp_path, monkeypatch, name):
    monkeypatch.setattr(environment, "_fonts", lambda project, variables: project.build)
    monkeypatch.delenv(name, raising=False)
    without = controlled(project, tmp_path)
    monkeypatch.setenv(name, HOSTILE[name])
    assert controlled(project, tmp_path) == without


@pytest.mark.parametrize("name", [*PLACES, *DEVICES])
def test_what_leads_to_the_parts_of_the_machine_passes(project, tmp_path, monkeypatch, name):
    monkeypatch.setattr(environment, "_fonts", lambda project, variables: project.build)
    monkeypatch.setenv(name, "somewhere")
    assert controlled(project, tmp_path)[name] == "somewhere"
    monkeypatch.delenv(name)
    assert name not in controlled(project, tmp_path)


def test_the_list_of_fonts_is_made_once(project, tmp_path, monkeypatch):
    run, runs = subprocess.run, []
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: runs.append(args) or run(*args, **options))
    places = {controlled(project, tmp_path)["MPLCONFIGDIR"] for _ in range(2)}
    assert len(runs) == len(places) == 1
    assert [path.name.startswith("fontlist") for path in Path(places.pop()).iterdir()] == [True]


def test_another_build_may_make_the_list_at_the_same_time(project, tmp_path, monkeypatch):
    def other_build_is_faster(command, env, **options):
        place = project.build / "matplotlib" / environment.version("matplotlib")
        place.mkdir()
        (place / "fontlist.json").touch()

    monkeypatch.setattr(subprocess, "run", other_build_is_faster)
    place = Path(controlled(project, tmp_path)["MPLCONFIGDIR"])
    assert [path.name for path in place.iterdir()] == ["fontlist.json"]
    assert list(place.parent.iterdir()) == [place]
