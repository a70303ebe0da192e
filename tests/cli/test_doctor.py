from __future__ import annotations

import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from support.command import Command

from accelopt_lsp import installation
from accelopt_profiling.triton_adapter.versions import unsupported


@pytest.mark.slow
def test_doctor_names_everything_and_makes_nothing(accelopt: Command, home: Path) -> None:
    ended = accelopt("doctor", "--json")
    assert ended.code == 0, ended.out
    checks = {check["name"]: check for check in ended.object["checks"]}
    assert {"Python", "torch", "triton", "ptxas", "NKI SDK", "ssh", "memory", "settings", "model"} <= set(
        checks
    )
    assert checks["torch"]["state"] == checks["ptxas"]["state"] == "ok"
    assert "not made yet" in checks["memory"]["found"]
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
        raise installation.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation.importlib.metadata, "version", absent)
    monkeypatch.setattr(installation.shutil, "which", lambda name: None)
    monkeypatch.setattr(installation.importlib.util, "find_spec", lambda name: None)
    assert installation.torch().state == "absent"
    assert "accelopt-lsp[triton]" in installation.triton().fix
    assert installation.package("numpy", "numpy", needed=True).state == "broken"
    assert installation.ptxas().state == "absent"
    assert installation.nvidia().state == "absent"


def test_a_gpu_is_named_with_what_was_never_run_on_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H200, 580.159.03'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    check = installation.nvidia()
    assert check.state == "ok"
    assert check.found == "NVIDIA H200, 580.159.03; timing on GPUs: not yet run on a GPU"
    assert "accelopt bench device" in check.fix


@pytest.mark.parametrize(
    ("version", "state"), [("3.3.0", "ok"), ("3.9.0+git1", "ok"), ("3.2.0", "broken"), ("3.10.0", "broken")]
)
def test_tritons_version_counts(monkeypatch: pytest.MonkeyPatch, version: str, state: str) -> None:
    monkeypatch.setattr(installation.importlib.metadata, "version", lambda name: version)
    check = installation.triton()
    assert check.state == state
    assert check.fix == unsupported(version, sys.executable)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.2.0", "3.10.0"])
def test_a_triton_outside_of_the_range_is_one_sentence_before_the_first_job(
    accelopt: Command, home: Path, version: str
) -> None:
    python = _python_with_triton(home / "env", version)
    sentence = unsupported(version, str(python))
    (home / "k.py").write_text(
        "import triton\n\n@triton.jit\ndef k(x):\n    pass\n\ndef run(x):\n    k[(1,)](x)\n    return x\n\n"
        "def get_inputs():\n    return []\n\ndef reference():\n    return None\n"
    )
    (home / "user.toml").write_text(f'python = "{python}"\n')
    checks = {check["name"]: check for check in accelopt("doctor", "--json").object["checks"]}
    kernels = checks["Python for kernels"]
    assert (kernels["state"], kernels["fix"]) == ("broken", sentence)
    ended = accelopt("profile", "k.py", "--json")
    assert sentence in ended.out + ended.err
    assert "internal" not in ended.out + ended.err


def _python_with_triton(folder: Path, version: str) -> Path:
    """Return the Python of an environment with this one's packages, and a Triton that only has its version."""
    venv.create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "triton").mkdir()
    (packages / "triton/__init__.py").write_text(f"__version__ = '{version}'\n")
    about = packages / f"triton-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: triton\nVersion: {version}\n")
    own = sysconfig.get_path("purelib")
    (packages / "own.pth").write_text(f"import site; site.addsitedir({own!r})\n")
    return folder / "bin" / "python"
