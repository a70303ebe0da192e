"""The key of a stored profile holds what the profile comes from: the conditions here, the texts in ``content_key``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accelopt_lsp.service.cache_key import installed_packages, run_conditions
from accelopt_lsp.settings.load import Settings, load_settings
from accelopt_lsp.settings.values import HostSettings
from accelopt_profiling.content_key import content_key
from accelopt_profiling.examination import examine


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("ACCELOPT_CONFIG", str(tmp_path / "user.toml"))
    loaded = load_settings(tmp_path)
    return replace(loaded, hosts={"box": HostSettings(ssh="box.example")})


CHANGES: dict[str, Any] = {
    "the target": lambda s: replace(s, target=replace(s.target, triton="a100")),
    "the host": lambda s: replace(s, host="box"),
    "the interpreter": lambda s: replace(s, interpreter=replace(s.interpreter, path="/elsewhere/bin/python")),
    "a variable": lambda s: replace(s, env={"TRITON_DEFAULT_FP_FUSION": "0"}),
    "a limit": lambda s: replace(s, limits=replace(s.limits, seconds=s.limits.seconds + 1)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_each_condition_is_in_the_key(settings: Settings, what: str) -> None:
    file = examine(Path("/k.py"), "import nki\n")
    changed = CHANGES[what](settings)
    keys = {content_key("profile", file, run_conditions(s)) for s in (settings, changed)}
    assert len(keys) == 2
    assert content_key("profile", file, run_conditions(changed)) in keys
    json.dumps(run_conditions(changed))  # it goes to another process


def test_where_a_host_is_belongs_to_the_key(settings: Settings) -> None:
    there = replace(settings, host="box")
    moved = replace(there, hosts={"box": HostSettings(ssh="box.example", python="/opt/python3.12")})
    assert run_conditions(there) != run_conditions(moved)


def test_another_version_of_a_package_is_another_key(tmp_path: Path) -> None:
    packages = tmp_path / "venv/lib/python3.12/site-packages"
    (packages / "triton-3.7.1.dist-info").mkdir(parents=True)
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").symlink_to("/usr/bin/python3")
    python = str(tmp_path / "venv/bin/python")
    assert installed_packages(python) == ["triton-3.7.1.dist-info"]
    (packages / "triton-3.7.1.dist-info").rename(packages / "triton-3.8.0.dist-info")
    assert installed_packages(python) == ["triton-3.8.0.dist-info"]
    assert installed_packages("") == installed_packages(str(tmp_path / "nothing/bin/python")) == []
