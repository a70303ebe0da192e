"""The Python whose packages kernels see, and the variables that they get."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_lsp.settings.approvals import Approvals
from accelopt_lsp.settings.load import OWN, find_interpreter, load_settings
from accelopt_lsp.settings.trust import Workspace
from accelopt_profiling.worker.environment import given_variables, step_environment, worker_environment


def environment(folder: Path) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    return folder


@pytest.fixture
def project(tmp_path):
    environment(tmp_path / "project" / ".venv")
    environment(tmp_path / ".venv")  # above the project: somebody else's
    (tmp_path / "project" / "kernels").mkdir()
    return tmp_path / "project"


def found(project, environ=(), setting="", trusted=True, root=None, in_editor=None):
    start = project / "kernels" / "k.py"
    return find_interpreter(
        setting, "your settings", start, root or project, dict(environ), trusted, in_editor
    )


def test_the_first_that_is_there(project, tmp_path):
    active, conda = environment(tmp_path / "active"), environment(tmp_path / "conda")
    every = {"VIRTUAL_ENV": str(active), "CONDA_PREFIX": str(conda)}
    assert (
        str(found(project, every, "/p/python", in_editor="/e/python"))
        == "/p/python (the setting `python`, your settings)"
    )
    assert str(found(project, every, in_editor="/e/python")) == "/e/python (chosen in the editor)"
    assert str(found(project, every)) == f"{active}/bin/python (from VIRTUAL_ENV)"
    del every["VIRTUAL_ENV"]
    assert str(found(project, every)) == f"{project}/.venv/bin/python (the environment .venv in {project})"
    (project / ".venv" / "bin" / "python").unlink()
    assert found(project, every).origin == "from CONDA_PREFIX"
    assert found(project) is OWN


def test_a_repositorys_environment_needs_trust(project):
    assert found(project, trusted=False) is OWN


def test_settings_tell_the_interpreter_of_a_file(project):
    (project / "accelopt.toml").touch()
    approvals = project.parent / "approvals.json"
    environ = {"ACCELOPT_CONFIG": "/none", "ACCELOPT_APPROVALS": str(approvals)}
    file = project / "kernels" / "k.py"
    settings = load_settings(file, environ=environ)
    assert settings.interpreter is OWN, "nobody trusted the project's environment"
    assert f"{project}/.venv/bin/python" in "".join(map(str, settings.complaints))
    by_editor = Workspace(folders=(project,), trusted=frozenset({project}))
    in_editor = load_settings(file, environ=environ, workspace=by_editor)
    assert in_editor.interpreter.path == f"{project}/.venv/bin/python"
    Approvals(approvals).give(project, trust=True)
    assert load_settings(file, environ=environ).interpreter.path == f"{project}/.venv/bin/python"
    assert load_settings(file, environ=environ, workspace=Workspace(restricted=True)).interpreter is OWN


def test_each_folder_has_the_interpreter_that_was_chosen_for_it(tmp_path):
    first, second, other = (tmp_path / name for name in ("first", "second", "other"))
    for folder in (first, second, other):
        folder.mkdir()
    pythons = {first: "/first/python", second: "/second/python"}
    trusted = Workspace((first, second), frozenset({tmp_path}), pythons=pythons)
    for folder, python in {**pythons, other: OWN.path}.items():
        settings = load_settings(folder / "k.py", environ={"ACCELOPT_CONFIG": "/none"}, workspace=trusted)
        assert settings.interpreter.path == python


def test_variables_are_a_persons_own(project, tmp_path):
    (tmp_path / "mine.toml").write_text('env = {FLA_MODE = "x", HF_TOKEN = "hidden"}')
    (project / "accelopt.toml").write_text('env = {PATH = "/evil"}')
    settings = load_settings(project / "k.py", environ={"ACCELOPT_CONFIG": str(tmp_path / "mine.toml")})
    assert settings.env == {"FLA_MODE": "x"}
    assert "hidden" not in repr(settings) + "".join(map(str, settings.complaints))
    assert any("belongs into your own settings" in str(c) for c in settings.complaints)


def test_variables_reach_steps_and_nothing_else_does(tmp_path):
    host = {"PATH": "/bin", "OTHER": "1", **given_variables({"FLA_MODE": "x"})}
    worker = worker_environment(host)
    assert worker["FLA_MODE"] == "x"
    step = step_environment(tmp_path, worker)
    assert step["FLA_MODE"] == "x"
    assert "OTHER" not in step
