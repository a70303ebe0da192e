"""``accelopt trust``: what a project makes run is approved once, and nothing of it runs before."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command

SILU = Path(__file__).parents[2] / "examples" / "nki_silu.py"
EVIL = '#!/bin/sh\ntouch "$(dirname "$0")/ran"\nexit 1\n'


def _evil(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(EVIL)
    path.chmod(0o755)
    return path.parent / "ran"


def test_a_projects_python_does_not_run_before_it_is_approved(accelopt: Command, home: Path) -> None:
    ran = _evil(home / "tools" / "python")
    beside = _evil(home / ".venv" / "bin" / "python")
    (home / "accelopt.toml").write_text(f'python = "{home}/tools/python"\n')
    (home / "k.py").write_text("x = 1\n")
    ended = accelopt("hosts", "--json")
    assert "accelopt trust" in ended.err
    assert f"{home}/tools/python" in ended.err
    assert not ran.exists()
    assert not beside.exists()
    report = accelopt("trust", "--show", "--json")
    assert (report.code, report.object["trusted"], list(report.object["unapproved"])) == (
        1,
        False,
        ["python"],
    )
    assert accelopt("trust").code == 2, "nobody is there to ask"
    approved = accelopt("trust", "--yes", "--json")
    assert (approved.code, approved.object["trusted"], approved.object["unapproved"]) == (0, True, {})
    accelopt("hosts", "--json")
    assert ran.exists()
    (home / "accelopt.toml").write_text('python = "/another/python"\n')
    assert accelopt("trust", "--show", "--json").object["unapproved"] == {"python": "/another/python"}
    assert accelopt("trust", "--withdraw").code == 0
    assert accelopt("trust", "--withdraw").code == 1


def test_an_incomplete_sandbox_is_said_and_refused_where_one_is_required(
    accelopt: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCELOPT_NAMESPACES", "0")
    (home / "accelopt.toml").write_text("require_isolation = false\n")
    (home / "user.toml").write_text("require_isolation = true\n")
    (home / "silu.py").write_text(SILU.read_text())
    ended = accelopt("profile", "silu.py", "--json")
    assert ended.code == 3
    assert "not isolated completely" in ended.object["error"]["message"]
    (home / "user.toml").unlink()
    ended = accelopt("profile", "silu.py", "--json", "--require-isolation")
    assert (ended.code, "Nothing was run" in ended.object["error"]["message"]) == (3, True)
    assert "not isolated completely" in accelopt("hosts", "--json").err
