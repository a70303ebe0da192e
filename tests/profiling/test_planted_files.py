"""Files that a project or another user planted: links to devices and keys, pipes, and folders named like ours."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from accelopt_profiling.examination import examine
from accelopt_profiling.folder_tree import remove_tree
from accelopt_profiling.job_files import job_files
from accelopt_profiling.problems.layouts.gpumode import gpumode_task
from accelopt_profiling.source_text import UnreadableFileError, read_regular, read_text
from accelopt_profiling.worker.job_folders import pid_namespace, remove_stale_folders
from accelopt_profiling.worker.readable_places import private_entries


@pytest.mark.parametrize("kind", ["device", "pipe", "large"])
def test_what_has_no_end_is_not_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "k.py"
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(1 << 30)
    with pytest.raises(OSError, match=r"is (not a regular file|larger than)"):
        read_regular(path)
    with pytest.raises(UnreadableFileError, match=r"is (not a regular file|larger than)"):
        read_text(path)


def test_a_link_to_a_file_elsewhere_is_not_copied_into_a_job(tmp_path: Path) -> None:
    key, project = tmp_path / "id_ed25519", tmp_path / "project"
    key.write_text("KEY = 'private'\n")
    (project / ".git").mkdir(parents=True)
    (project / ".hidden.py").write_text("x = 1\n")
    (project / "linked.py").symlink_to(key)
    (project / "inside.py").symlink_to(project / ".hidden.py")
    (project / "own.py").write_text("x = 1\n")
    text = "import triton\nimport linked, inside, own\n\n@triton.jit\ndef k(x):\n    pass\n"
    (project / "k.py").write_text(text)
    (project / "k_problem.py").symlink_to(key)
    source = job_files(examine(project / "k.py", text, project_root=project), ship_imports=True)
    assert set(source.files) == {"k.py", "own.py"}
    assert "private" not in "".join(source.files.values())


def test_a_task_names_files_of_its_own_set(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("x = 1\n")
    folder = tmp_path / "problems" / "set" / "task"
    folder.mkdir(parents=True)
    (folder.parent / "shared.py").write_text("x = 1\n")
    (folder / "reference.py").write_text("x = 1\n")
    for source, fault in (("../shared.py", False), ("../../../secret.py", True)):
        (folder / "task.yml").write_text(
            f'files:\n  - {{"name": "a.py", "source": "{source}"}}\ntests:\n  - {{"n": 1}}\n'
        )
        task = gpumode_task(folder / "submission.py")
        assert task is not None
        assert ("names" in (task.fault or "")) == fault


def test_cleaning_stale_folders_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    mine, gone = tmp_path / "mine", subprocess.Popen(["true"])
    gone.wait()
    (mine / "inner").mkdir(parents=True)
    (mine / "inner").chmod(0o500)
    (tmp_path / "tmp").mkdir()
    planted = tmp_path / "tmp" / f"accelopt-{gone.pid}-{pid_namespace()}-x"
    planted.symlink_to(mine)
    remove_stale_folders()
    remove_tree(planted)
    assert planted.is_symlink()
    assert (mine / "inner").stat().st_mode & 0o777 == 0o500


def test_hidden_files_and_keys_of_a_project_are_private_and_its_modules_are_not(tmp_path: Path) -> None:
    private = [".env", "deep/er/.env.local", ".git/config", "server.pem", "deep/id_rsa", "credentials.json"]
    visible = ["kernel.py", "secrets.py", ".gitignore", "deep/data.npy", "keys.py"]
    for name in (*private, *visible):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    entries = {os.path.relpath(entry, tmp_path) for entry in private_entries(str(tmp_path))}
    assert entries == {".env", "deep/er/.env.local", ".git", "server.pem", "deep/id_rsa", "credentials.json"}
