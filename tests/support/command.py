"""Runs a command in this process as the console script would, and reads what it prints; fixtures for a conftest."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from accelopt_lsp import resources
from accelopt_lsp.cli.main import run
from accelopt_profiling.hosts import local
from support.shared_host import SharedWorkers


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def object(self) -> Any:
        """The one JSON object on standard output, but for the version of its shape; anything beside it is an error."""
        answer = json.loads(self.out)
        assert answer.pop("schema") == 1
        return answer


class Command:
    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: object) -> Ended:
        self._capture.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = self._capture.readouterr()
        return Ended(code, out, err)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: SharedWorkers) -> Path:
    """The working folder, with ``memory.db`` and ``user.toml`` in it when something makes them: no settings and no
    memory of the person who runs the tests."""
    for name in [n for n in os.environ if n.startswith("ACCELOPT_")]:
        monkeypatch.delenv(name)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACCELOPT_DB", str(tmp_path / "memory.db"))
    monkeypatch.setenv("ACCELOPT_CONFIG", str(tmp_path / "user.toml"))
    monkeypatch.setenv("ACCELOPT_APPROVALS", str(tmp_path / "approvals.json"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(resources, "_said", set())
    monkeypatch.setattr(local, "LocalHost", workers.host)
    return tmp_path


@pytest.fixture
def accelopt(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)
