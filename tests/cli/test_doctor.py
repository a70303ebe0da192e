from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command

from accelopt_lsp.cli import doctor


@pytest.mark.slow
def test_doctor_names_everything_and_makes_nothing(accelopt: Command, home: Path) -> None:
    ended = accelopt("doctor", "--json")
    assert ended.code == 0, ended.out
    found = {check["name"]: check for check in ended.object["checks"]}
    assert {"Python", "torch", "triton", "ptxas", "NKI SDK", "ssh", "memory", "settings", "model"} <= set(
        found
    )
    assert found["torch"]["state"] == found["ptxas"]["state"] == "ok"
    assert "not made yet" in found["memory"]["found"]
    assert not (home / "memory.db").exists()
    assert "ptxas" in accelopt("doctor").out


def test_what_is_broken_comes_with_its_repair(accelopt: Command, home: Path) -> None:
    (home / "memory.db").write_bytes(b"rubbish" * 1000)
    (home / "user.toml").write_text("[limits]\nseconds = 'x'")
    ended = accelopt("doctor", "--json")
    assert ended.code == 1
    broken = {c["name"]: c for c in ended.object["checks"] if c["state"] == "broken"}
    assert set(broken) == {"memory", "settings"}
    assert "set-aside" in broken["memory"]["found"]
    assert "limits.seconds" in broken["settings"]["fix"]


def test_what_is_absent_comes_with_its_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise doctor.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", absent)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    assert doctor.torch().state == "absent"
    assert "accelopt-lsp[triton]" in doctor.triton().fix
    assert doctor.package("numpy", "numpy", needed=True).state == "broken"
    assert doctor.ptxas().state == "absent"
    assert doctor.nvidia().state == "absent"


def test_a_gpu_is_named_with_what_was_never_run_on_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H200, 580.159.03'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = doctor.nvidia()
    assert found.state == "ok"
    assert found.found == "NVIDIA H200, 580.159.03; timing on GPUs: not yet run on a GPU"
    assert "accelopt bench device" in found.fix


@pytest.mark.parametrize(
    ("version", "state"), [("3.7.1", "ok"), ("3.9.0+git1", "ok"), ("3.5.1", "broken"), ("3.10.0", "broken")]
)
def test_tritons_version_counts(monkeypatch: pytest.MonkeyPatch, version: str, state: str) -> None:
    monkeypatch.setattr(doctor.importlib.metadata, "version", lambda name: version)
    assert doctor.triton().state == state
