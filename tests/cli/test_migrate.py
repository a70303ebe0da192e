"""``accelopt migrate``: a file of its own in today's NKI, and what it says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command
from support.nki_kernels import SILU

TODAY = "import nki\n\n@nki.jit\ndef k(a):\n    return a\n"


@pytest.mark.slow
def test_a_kernel_is_moved_proved_and_profiles(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    ended = accelopt("migrate", "silu.py", "--json")
    assert ended.code == 0, ended.err
    assert ended.object["proved"] is True
    assert ended.object["unmoved"] == []
    assert ended.object["cases"][0]["case"] == "the profiled case"
    assert all(case["equal"] for case in ended.object["cases"])
    assert "neuronxcc" not in (home / "silu_nki.py").read_text()
    found = accelopt("profile", "silu_nki.py", "--json")
    assert found.object["kernels"][0]["correctness"]["status"] == "passed"
    assert accelopt("migrate", "silu.py").code == 2


def test_what_cannot_be_moved_at_all_is_told(accelopt: Command, home: Path) -> None:
    (home / "today.py").write_text(TODAY)
    assert accelopt("migrate", "today.py").code == 1
    (home / "silu.py").write_text(SILU[: SILU.index("def get_inputs")])
    ended = accelopt("migrate", "silu.py")
    assert ended.code == 2
    assert "accelopt problem" in ended.err
    assert not list(home.glob("*_nki.py"))
