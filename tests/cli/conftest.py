"""Commands with a home of their own: no settings and no memory of the person who runs the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Command

from accelopt_lsp import resources as opening


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with ``memory.db`` and ``user.toml`` in it when something makes them."""
    for name in [n for n in __import__("os").environ if n.startswith("ACCELOPT_")]:
        monkeypatch.delenv(name)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACCELOPT_DB", str(tmp_path / "memory.db"))
    monkeypatch.setenv("ACCELOPT_CONFIG", str(tmp_path / "user.toml"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(opening, "_said", set())
    return tmp_path


@pytest.fixture
def accelopt(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)
