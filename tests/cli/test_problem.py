"""``accelopt problem``: what it writes is found and can be run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command
from support.nki_kernels import SILU

KERNEL = SILU[: SILU.index("def get_inputs")]


@pytest.mark.slow
def test_the_problem_that_is_written_is_the_one_that_is_used(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(KERNEL)
    ended = accelopt("problem", "silu.py", "--json")
    assert ended.code == 0
    assert (ended.object["path"], ended.object["kernel"]) == ("silu_problem.py", "silu")
    profile = accelopt("profile", "silu.py", "--json")
    assert profile.code == 0, profile.err
    assert profile.object["kernels"][0]["correctness"]["status"] == "not checked"
    assert profile.object["kernels"][0]["latency"]["us"] > 0


def test_what_is_there_is_not_overwritten(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(KERNEL)
    (home / "silu_problem.py").write_text("mine = 1\n")
    ended = accelopt("problem", "silu.py")
    assert ended.code == 2
    assert "exists already" in ended.err
    assert (home / "silu_problem.py").read_text() == "mine = 1\n"


def test_a_file_without_such_a_kernel_is_told(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(KERNEL)
    (home / "none.py").write_text("x = 1\n")
    assert "it has silu" in accelopt("problem", "silu.py", "--kernel", "other").err
    assert accelopt("problem", "none.py").code == 1
    (home / "half.py").write_text(KERNEL + "def (")
    assert accelopt("problem", "half.py").code == 2
    assert not list(home.glob("*_problem.py"))
