"""The parser's process reads what the service stored, and a memory that cannot be used costs nothing but that."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_lsp.service.local import LocalService
from accelopt_lsp.service.parser_main import StoredProfiles
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.settings.load import load_settings
from accelopt_memory.connection import Connection
from accelopt_memory.profile_cache import ProfileCache
from accelopt_profiling.examination import examine
from accelopt_profiling.measurement import HOST_FAULTS, FileMeasurement, Finding, KernelMeasurement


def test_what_was_stored_is_read_and_nothing_is_created(tmp_path: Path) -> None:
    database, profiles = tmp_path / "memory.db", StoredProfiles()
    assert profiles.get(database, "key") is None
    assert not database.exists()
    connection = Connection(database)
    ProfileCache(connection).put("key", {"kernels": []})
    assert profiles.get(database, "key") == {"kernels": []}
    assert profiles.get(database, "other") is None
    with connection.writing() as db:
        db.execute("UPDATE profile_cache SET value_json = 'cut off'")
    assert profiles.get(database, "key") is None
    connection.close()


def test_a_memory_that_cannot_be_used_holds_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "memory.db"
    broken.write_text("no database" * 1000)
    profiles = StoredProfiles()
    assert profiles.get(broken, "key") is None
    assert profiles.get(broken / "below", "key") is None


@pytest.mark.parametrize("code", [*sorted(HOST_FAULTS), "timeout", "wrong-result"])
async def test_what_the_host_lacked_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setenv("ACCELOPT_DB", str(tmp_path / "memory.db"))
    file = FileRequest(examine(Path("/k.py"), "import triton\n"), load_settings(), key="key")
    service = LocalService()
    finding = Finding(code, 3, "error", "It is so.")
    await service._remember(
        file, FileMeasurement("/k.py", [KernelMeasurement("k", 3, "nki", "trn1")], [finding])
    )
    await service.close()
    stored = StoredProfiles().get(tmp_path / "memory.db", "key")
    assert (stored is not None) == (code == "wrong-result")
