"""The parser's process reads what the backend stored, and a memory that cannot be used costs nothing but that."""

from __future__ import annotations

from pathlib import Path

from accelopt_lsp.backend.parser_main import StoredProfiles
from accelopt_memory.connection import Connection
from accelopt_memory.profile_cache import ProfileCache


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
