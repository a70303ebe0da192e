"""What git says of a file: its commits since a moment, and why there are none."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from accelopt_lsp.errors import UserError
from accelopt_lsp.server.git import commits, committed


def git(folder: Path, *command: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *who, *command], check=True, capture_output=True)


async def test_the_commits_of_a_file_since_a_moment(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    with pytest.raises(UserError):
        await commits(path, 0)
    git(tmp_path, "init", "-q")
    for number, text in enumerate(("one", "two\ttabs")):
        path.write_text(text)
        (tmp_path / "other.py").write_text(text)
        git(tmp_path, "add", "k.py")
        git(tmp_path, "commit", "-q", "-m", text, f"--date=@{1000 + number}")
    git(tmp_path, "add", "other.py")
    git(tmp_path, "commit", "-q", "-m", "another file")
    listed = await commits(path, 0)
    assert [commit.subject for commit in listed] == ["one", "two\ttabs"]
    assert all(abs(time.time() - commit.at) < 600 for commit in listed)
    assert await commits(path, time.time() + 1000) == ()
    assert await committed(path) == "two\ttabs"
