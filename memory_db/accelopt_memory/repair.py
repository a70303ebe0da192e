"""Salvages what can be read of a damaged database into a new one, which then takes its place."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_memory.memory import TABLES, Memory, set_aside

#: The tables that are salvaged, with the column that numbers their rows; the profile cache fills itself again.
_NUMBERED = {
    **dict.fromkeys(TABLES.values(), "number"), "outcomes": "number", "run_events": "rowid", "kernels": "rowid"
}  # fmt: skip
#: Where the largest number of a table cannot be read, numbers up to this are tried.
_MOST_ROWS = 1 << 22


@dataclass(frozen=True)
class RepairReport:
    """``kept`` counts the rows that were salvaged by table, ``lost`` the places where reading failed; ``moved_to`` is
    where the damaged file is now."""

    moved_to: Path
    kept: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)


def repair(path: Path) -> RepairReport:
    """Salvage the database at ``path`` row by row.

    The damaged file is kept beside the new one.

    Raises:
        FileNotFoundError: there is no such file.
        MemoryUnavailableError, OSError: the new one cannot be written. The damaged one is then where it was.
    """
    if not path.is_file():
        raise FileNotFoundError(path)
    fresh = path.with_name(f"{path.name}.repaired")
    for suffix in ("", "-wal", "-shm"):
        fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
    row_counts: dict[str, int] = {}
    lost: dict[str, int] = {}
    with Memory.open(fresh) as memory, contextlib.closing(_opened(path)) as damaged:
        for table, key in _NUMBERED.items():
            with memory.connection.writing() as db:
                columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
                row_counts[table] = lost[table] = 0
                for row in _readable(damaged, table, key):
                    if row is None:
                        lost[table] += 1
                        continue
                    values = {
                        name: value for name, value in row.items() if name in columns and value is not None
                    }
                    before = db.conn.total_changes
                    with contextlib.suppress(sqlite3.IntegrityError):
                        db.insert(table, values, "IGNORE")
                    row_counts[table] += db.conn.total_changes > before
        memory.connection.checkpoint()
    moved = set_aside(path)
    assert moved is not None
    os.replace(fresh, path)
    return RepairReport(moved, row_counts, {table: count for table, count in lost.items() if count})


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _readable(damaged: sqlite3.Connection, table: str, key: str) -> Iterator[dict[str, object] | None]:
    """Yield the rows that can be read, and None for each place where none can."""
    try:
        last = damaged.execute(f"SELECT max({key}) FROM {table}").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if "no such" in str(error) or "not a database" in str(error):
            return
        last = _MOST_ROWS
    ranges = [(0, int(last or 0))]
    while ranges:
        first, end = ranges.pop()
        try:
            query = f"SELECT * FROM {table} WHERE {key} BETWEEN ? AND ?"
            rows = [dict(row) for row in damaged.execute(query, [first, end])]
        except sqlite3.DatabaseError:
            if first == end:
                yield None
                continue
            middle = (first + end) // 2
            ranges += [(middle + 1, end), (first, middle)]
            continue
        yield from rows
