"""Looking into the memory and taking things out of it: counts, text search, one entry by id, forgetting."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_memory.connection import Connection
from accelopt_memory.receipts import one_receipt
from accelopt_memory.records import Found, Pair, RecordKind, Rejection, Run, Trap
from accelopt_memory.rows import from_row, storable
from accelopt_memory.suggestions import one_suggestion

#: Where each kind of record is kept.
TABLES: dict[RecordKind, str] = {
    "pair": "pairs",
    "trap": "traps",
    "rejection": "rejections",
    "run": "runs",
    "suggestion": "suggestions",
    "receipt": "receipts",
}

#: What stands for an entry's one-line summary in a list of hits; ``t`` is the table.
_SUMMARIES: dict[RecordKind, str] = {
    "pair": "t.summary",
    "trap": "t.code || ': ' || t.message",
    "rejection": "t.reason",
}


@dataclass(frozen=True)
class Stats:
    """How much the memory holds. ``bytes`` counts the file and its write-ahead log, 0 when there is none."""

    path: str
    pairs: int
    traps: int
    rejected: int
    runs: int
    receipts: int
    bytes: int


def stats(connection: Connection) -> Stats:
    with connection.reading() as db:
        tables = ("pairs", "traps", "rejections", "runs", "receipts")
        count = {table: int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in tables}
    files = (connection.path, Path(f"{connection.path}-wal"))
    return Stats(
        path=str(connection.path),
        pairs=count["pairs"],
        traps=count["traps"],
        rejected=count["rejections"],
        runs=count["runs"],
        receipts=count["receipts"],
        bytes=sum(file.stat().st_size for file in files if file.exists()),
    )


def search(connection: Connection, text: str, limit: int) -> list[Found]:
    """Pairs, traps and rejections that hold every word of ``text``, best first within each kind."""
    asked = storable(text).replace("\0", " ").split()[:32]  # the text index ends what it reads at a zero
    words = ['"' + word.replace('"', '""') + '"' for word in asked]
    if not words:
        return []
    found: list[Found] = []
    with connection.reading() as db:
        for kind, summary in _SUMMARIES.items():
            table = TABLES[kind]
            rows = db.execute(
                f"SELECT t.id, t.kernel, {summary}, t.created "
                f"FROM {table} t JOIN {table}_fts f ON t.number = f.rowid "
                f"WHERE {table}_fts MATCH ? ORDER BY f.rank, t.id LIMIT ?",
                [" ".join(words), limit],
            ).fetchall()
            found += [Found(kind, *row) for row in rows]
    return found[:limit]


def entries(connection: Connection, id_or_start: str) -> list[tuple[RecordKind, str]]:
    """The kind and full id of every entry whose id is, or begins with, ``id_or_start`` (at least 4
    characters)."""
    if len(id_or_start) < 4:
        return []
    pattern = storable(id_or_start).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    with connection.reading() as db:
        return [
            (kind, row[0])
            for kind, table in TABLES.items()
            for row in db.execute(f"SELECT id FROM {table} WHERE id LIKE ? ESCAPE '\\' LIMIT 50", [pattern])
        ]


def entry(connection: Connection, kind: RecordKind, entry_id: str) -> Any | None:
    """The record itself, as its dataclass; None when there is none."""
    if kind == "suggestion":
        return one_suggestion(connection, entry_id)
    if kind == "receipt":
        return one_receipt(connection, entry_id)
    classes: dict[str, type[Any]] = {"pair": Pair, "trap": Trap, "rejection": Rejection, "run": Run}
    with connection.reading() as db:
        rows = list(db.query(f"SELECT * FROM {TABLES[kind]} WHERE id = ?", [entry_id]))
    return from_row(classes[kind], rows[0]) if rows else None


def forget(connection: Connection, kind: RecordKind, entry_id: str) -> bool:
    """Delete one entry, and with a pair the receipts that no other pair has, with a run its events and
    suggestions.

    True when there was one.
    """
    with connection.writing() as db:
        if kind == "pair":
            evidence = "SELECT r.value FROM pairs, json_each(receipts_json) r WHERE pairs.id"
            db.execute(
                f"DELETE FROM receipts WHERE id IN ({evidence} = ?) AND id NOT IN ({evidence} <> ?)",
                [entry_id, entry_id],
            )
        elif kind == "run":
            db.execute("DELETE FROM run_events WHERE run = ?", [entry_id])
            db.execute("DELETE FROM suggestions WHERE run = ?", [entry_id])
        return bool(db.execute(f"DELETE FROM {TABLES[kind]} WHERE id = ?", [entry_id]).rowcount)
