from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlite_utils import Database

from accelopt_memory.connection import NEWEST_MIGRATION
from accelopt_memory.memory import Memory
from accelopt_memory.migrations import migrations
from accelopt_memory.records import Trap

NAMES = [m.name for m in migrations.pending(Database(memory=True))]
#: What each step adds. A released step is never edited: a change here means that an old database would
#: differ.
ADDS = {
    "m001_pairs": {"pairs"},
    "m002_traps": {"traps"},
    "m003_rejections": {"rejections"},
    "m004_runs": {"runs"},
    "m005_run_events": {"run_events"},
    "m006_suggestions": {"suggestions"},
    "m007_receipts": {"receipts"},
    "m008_profile_cache": {"profile_cache"},
    "m009_text_search": {"pairs_fts", "traps_fts", "rejections_fts"},
    "m010_edits": set(),
    "m011_outcomes": {"outcomes"},
    "m012_sketches": set(),
    "m013_experience": {"kernels"},
    "m014_proved_pairs": set(),
    "m015_packed_pairs": set(),
    "m016_words_alone": set(),
}


def _tables(db: Database) -> set[str]:
    return {name for name in db.table_names() if not name.startswith("_") and "fts_" not in name}


def test_steps_are_ordered_by_name() -> None:
    assert sorted(NAMES) == NAMES == list(ADDS)
    assert NAMES[-1] == NEWEST_MIGRATION


@pytest.mark.parametrize("name", NAMES)
def test_each_step_adds_what_it_says_and_can_be_repeated(name: str) -> None:
    db = Database(memory=True)
    migrations.apply(db, stop_before=name)
    before = _tables(db)
    step = next(m for m in migrations.pending(db) if m.name == name)
    step.fn(db)
    assert _tables(db) - before == ADDS[name]
    schema = db.schema
    step.fn(db)  # as after a crash between the step and its note
    assert db.schema == schema
    migrations.apply(db)
    assert migrations.pending(db) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_database_of_any_earlier_version_opens(path: Path, name: str) -> None:
    path.parent.mkdir()
    db = Database(path)
    migrations.apply(db, stop_before=name)
    if "traps" in db.table_names():
        db["traps"].insert({"id": "old", "kernel_hash": "h", "candidate_id": "c", "target": "t", "origin": "o",
                            "code": "slower", "message": "", "kernel": "", "dialect": "", "steps_json": "[]",
                            "created": "2026", "imported": 0})  # fmt: skip
    held = int(db["traps"].count) if "traps" in db.table_names() else 0
    db.conn.close()
    before = path.read_bytes()
    with Memory.open(path, read_only=True) as memory:
        assert memory.stats().traps == held
    assert path.read_bytes() == before, "looking migrates a copy"
    with Memory.open(path) as memory:
        assert memory.stats().traps == held
        memory.add_trap(Trap("h2", "c2", "t", "o", "slower"))
        assert [hit.kind for hit in memory.search("slower")] == ["trap"] * (held + 1)


def test_opening_twice_changes_nothing(memory: Memory, path: Path) -> None:
    def schema() -> list[str]:
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()
        connection.close()
        return [row[0] for row in rows]

    before = schema()
    with Memory.open(path):
        assert schema() == before


def test_a_database_of_a_newer_version_still_works(path: Path) -> None:
    with Memory.open(path) as memory:
        memory.add_trap(Trap("h", "c", "t", "o", "slower"))
    db = Database(path)
    db["traps"].add_column("weight", float)
    db["_sqlite_migrations"].insert({"migration_set": "accelopt", "name": "m999_later", "applied_at": "2030"})
    db.conn.close()
    with Memory.open(path) as memory:
        memory.add_trap(Trap("h", "d", "t", "o", "slower"))
        assert len(memory.traps("h")) == 2
