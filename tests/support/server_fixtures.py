"""The scripted server with an editor at the other end, begun for each test that asks for ``editor``."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.editor import Editor
from support.forked import Parent


@pytest.fixture
def decisions(tmp_path: Path) -> Path:
    """Where the scripted server writes what was accepted and rejected."""
    return tmp_path / "decisions.jsonl"


@pytest.fixture
def environment(tmp_path: Path, decisions: Path) -> dict[str, str]:
    """A server that sees no settings and no memory of the person who runs the tests."""
    return {
        **os.environ,
        "SCRIPTED_LOG": str(decisions),
        "ACCELOPT_DB": str(tmp_path / "memory.db"),
        "ACCELOPT_CONFIG": str(tmp_path / "none.toml"),
        "ACCELOPT_APPROVALS": str(tmp_path / "approvals.json"),
        "ACCELOPT_CONSENTS": str(tmp_path / "consents.json"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    """What a server imports, imported once."""
    parent = Parent(tmp_path_factory.mktemp("imported"))
    yield parent
    parent.close()


@pytest_asyncio.fixture
async def editor(environment: dict[str, str], imported: Parent) -> AsyncIterator[Editor]:
    """An editor connected to the scripted server; the test calls ``begin``. The server must end by itself."""
    client = Editor()
    await client.start_io(*imported.command("support.scripted_server"), env=environment)
    yield client
    await client.end()


@pytest_asyncio.fixture
async def real(environment: dict[str, str]) -> AsyncIterator[Editor]:
    """An editor connected to the server that users start."""
    client = Editor()
    client.patience = 120.0
    await client.start_io(str(Path(sys.executable).with_name("accelopt-lsp")), env=environment)
    yield client
    await client.end()
