"""Trust is of the folder whose Python and files would run, however a file of it is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_lsp.settings.approvals import Approvals
from accelopt_lsp.settings.load import OWN, Settings, load_settings
from accelopt_lsp.settings.trust import Workspace

#: Files below ``tmp_path``, the folders that the editor has, those that are trusted, and what is asked about.
CASES = {
    "in a trusted folder": ("a/k.py", ["a"], ["a"], None),
    "below a trusted folder": ("a/in/k.py", ["a"], ["a"], None),
    "loose": ("b/k.py", ["a"], ["a"], "b"),
    "loose in a project": ("project/kernels/k.py", ["a"], ["a"], "project"),
    "of an added folder": ("b/k.py", ["a", "b"], ["a"], "b"),
    "of a folder that only shares a prefix": ("ab/k.py", ["a"], ["a"], "ab"),
    "of the inner of two roots": ("a/in/k.py", ["a", "a/in"], ["a/in"], None),
    "beside the inner of two roots": ("a/k.py", ["a", "a/in"], ["a/in"], "a"),
    "below a root, in a project of its own": ("project/kernels/k.py", ["."], [], "."),
    "of a project above the root": (
        "project/kernels/k.py",
        ["project/kernels"],
        ["project/kernels"],
        "project",
    ),
    "through a link to a folder": ("a/linked/k.py", ["a"], ["a"], "b"),
    "through a link to a file": ("a/linked.py", ["a"], ["a"], "b"),
    "through a link, where both are trusted": ("a/linked/k.py", ["a"], ["a", "b"], None),
    "through a link, where only its end is trusted": ("a/linked/k.py", ["a"], ["b"], "a"),
    "through a link to its own folder": ("own/k.py", ["own"], ["a"], None),
    "through a path upwards": ("a/../b/k.py", ["a"], ["a"], "b"),
}


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("a/in", "b", "ab", "project/kernels", "project/.git"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("a", "b", "ab", "a/in", "project"):
        python = tmp_path / name / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch()
    for name in ("a", "a/in", "b", "ab", "project/kernels"):
        (tmp_path / name / "k.py").touch()
    (tmp_path / "a" / "linked").symlink_to(tmp_path / "b")
    (tmp_path / "a" / "linked.py").symlink_to(tmp_path / "b" / "k.py")
    (tmp_path / "own").symlink_to(tmp_path / "a")
    return tmp_path


def _load(folders: Path, file: str, workspace: Workspace | None) -> Settings:
    environ = {"ACCELOPT_CONFIG": "/none", "ACCELOPT_APPROVALS": str(folders / "approvals.json")}
    return load_settings(folders / file, environ=environ, workspace=workspace)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("by", ["editor", "person"])
def test_the_folder_whose_python_would_run_is_asked_about(case: str, by: str, folders: Path) -> None:
    file, opened, trusted, folder = CASES[case]
    places = frozenset((folders / name).resolve() for name in trusted)
    for place in places if by == "person" else ():
        Approvals(folders / "approvals.json").give(place, trust=True)
    roots = tuple(folders / name for name in opened)
    settings = _load(folders, file, Workspace(roots, places if by == "editor" else frozenset()))
    assert settings.untrusted == (None if folder is None else (folders / folder).resolve())
    assert (settings.interpreter == OWN) is (folder is not None)
    assert _load(folders, file, Workspace(roots, places, restricted=True)).untrusted is not None


@pytest.mark.parametrize("file", ["a/linked/k.py", "a/linked.py"])
def test_the_command_line_follows_links_too(file: str, folders: Path) -> None:
    approvals = Approvals(folders / "approvals.json")
    approvals.give(folders / "a", trust=True)
    assert _load(folders, "a/k.py", None).interpreter != OWN
    assert _load(folders, file, None).interpreter == OWN
    approvals.give(folders / "b", trust=True)
    assert _load(folders, file, None).interpreter != OWN
