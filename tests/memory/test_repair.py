"""A damaged database gives what can be read; one of a newer version is named as such."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from accelopt_memory.connection import PAGE_BYTES
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair, Trap
from accelopt_memory.repair import repair


def test_what_can_be_read_is_salvaged(path: Path, make_pair: Callable[..., Pair]) -> None:
    with Memory.open(path) as memory:
        with memory.transaction():
            for number in range(300):
                memory.add_pair(make_pair(number))
        memory.add_trap(Trap("h", "c", "t", "o", "slower"))
        memory.connection.checkpoint()
    data = bytearray(path.read_bytes())
    rows = [p for p in range(0, len(data), PAGE_BYTES) if b'{"dialect"' in data[p : p + PAGE_BYTES]]
    for page in rows[len(rows) // 2 :][:2]:  # of the pairs' table, as only its rows hold this
        data[page : page + PAGE_BYTES] = b"\xff" * PAGE_BYTES
    path.write_bytes(data)
    report = repair(path)
    assert 200 <= report.kept["pairs"] < 300
    assert report.kept["traps"] == 1
    assert report.moved_to.read_bytes() == bytes(data)
    with Memory.open(path) as memory:
        assert len(memory.pairs()) == report.kept["pairs"]
        assert memory.add_pair(make_pair(1000))
        assert len(memory.search("larger", 1000)) == report.kept["pairs"] + 1


def test_a_sound_database_is_kept_whole(path: Path, make_pair: Callable[..., Pair]) -> None:
    with Memory.open(path) as memory:
        pair = make_pair()
        memory.add_pair(pair)
        memory.save_suggestion({"id": "s", "file": "f", "base_hash": "h"})
    assert repair(path).lost == {}
    with Memory.open(path) as memory:
        survivor = memory.pair(pair.id)
        assert survivor is not None
        assert survivor.fast_text == pair.fast_text
        assert memory.suggestion("s") is not None


def test_a_newer_schema_with_a_renamed_table_is_a_clear_message(path: Path) -> None:
    with Memory.open(path):
        pass
    database = sqlite3.connect(path)
    database.execute("ALTER TABLE traps RENAME TO failures")
    database.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('accelopt', 'm999_x', '2030')"
    )
    database.commit()
    database.close()
    with (
        Memory.open(path) as memory,
        pytest.raises(MemoryUnavailableError, match=r"newer AccelOpt .* update"),
    ):
        memory.traps()
