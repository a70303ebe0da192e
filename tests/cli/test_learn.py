"""A person's own pair goes through the gate and into the memory, or is refused with the reason."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.command import Command
from support.nki_kernels import FASTER, SILU, WRONG

from accelopt_memory.memory import Memory


@pytest.mark.slow
def test_a_right_and_faster_version_becomes_a_pair_of_a_person(accelopt: Command, home: Path) -> None:
    Path("silu.py").write_text(SILU)
    Path("faster.py").write_text(FASTER)
    learned = accelopt("learn", "silu.py", "faster.py", "--summary", "Wider tiles.", "--json")
    assert learned.code == 0
    assert learned.object["kernel"] == "silu"
    with Memory.open(home / "memory.db") as memory:
        (pair,) = memory.pairs()
        assert (pair.id, pair.origin, pair.summary) == (learned.object["pair"], "person", "Wider tiles")
        assert pair.steps == ("person",)
        assert memory.receipt(pair.receipts[0]) is not None
        assert [(o.item, o.accepted) for o in memory.outcomes.all()] == [(f"edit:{pair.edit}", True)]


@pytest.mark.slow
def test_a_wrong_or_slower_version_is_not_learned(accelopt: Command, home: Path) -> None:
    for name, text in (("silu", SILU), ("wrong", WRONG), ("faster", FASTER)):
        Path(f"{name}.py").write_text(text)
    wrong = accelopt("learn", "silu.py", "wrong.py", "--json")
    assert (wrong.code, wrong.object["learned"]) == (1, False)
    assert wrong.object["reasons"][0]["code"]
    slower = accelopt("learn", "faster.py", "silu.py", "--json")
    assert (slower.code, slower.object["reasons"][0]["code"]) == (1, "slower")
    with Memory.open(home / "memory.db") as memory:
        assert memory.pairs() == []


def test_a_version_of_git_is_read_and_a_wrong_one_is_told(accelopt: Command, home: Path) -> None:
    file = Path("silu.py")
    file.write_text(SILU)
    (home / ".git").rmdir()
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *command], check=True)
    same = accelopt("learn", "HEAD:silu.py", "silu.py")
    assert same.code == 1
    assert "do the same" in same.err
    assert accelopt("learn", "nothing:silu.py", "silu.py").code == 2
    assert accelopt("learn", "absent.py", "silu.py").code == 2
