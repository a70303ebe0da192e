"""Reads and writes rows of the database, and converts records to rows.

Fields that are no column's plain type are kept as JSON under ``<name>_json``.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from accelopt_profiling.plain import from_plain, to_plain

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


T = TypeVar("T", bound="DataclassInstance")

#: The columns of fields that have another name there: every version reads and writes those.
COLUMNS = {"checked": "proved"}


def now() -> str:
    """Return the time of an entry: UTC, ISO format, to the microsecond, so that text order is time order."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def to_json(value: Any) -> str:
    """Return JSON that UTF-8 can hold: readable where the text allows, escaped where it has half a surrogate pair."""
    plain = to_plain(value)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return text if _is_storable(text) else json.dumps(plain, separators=(",", ":"))


def storable(text: str) -> str:
    """Return the text as a column can hold it: half a surrogate pair (a file name that is no UTF-8) becomes its
    escape."""
    return text if _is_storable(text) else text.encode("utf-8", "backslashreplace").decode()


def storable_record(record: T) -> T:
    """Return the record with ``storable`` texts. Its id is that of what is kept."""
    changed = {
        field.name: storable(value)
        for field in dataclasses.fields(record)
        if isinstance(value := getattr(record, field.name), str) and not _is_storable(value)
    }
    return dataclasses.replace(record, **changed) if changed else record


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def insert_record(db: Database, table: str, record: Any, **extra: Any) -> str:
    """Insert a pair, trap or rejection with its creation time, unless it is there; return its id. ``extra`` columns
    are added, or stand in the place of the record's own.

    A record made on this machine replaces the same one imported, and an accepted pair the same one that was only
    checked.
    """
    record = storable_record(record)
    dated = dataclasses.replace(record, created=record.created or now())
    if not record.imported:
        db.execute(f"DELETE FROM {table} WHERE id = ? AND imported = 1", [record.id])
    if table == "pairs" and not record.checked:
        db.execute("DELETE FROM pairs WHERE id = ? AND proved = 1", [record.id])
    db.insert(table, to_row(dated, id=record.id) | extra, "IGNORE")
    return str(record.id)


def to_row(record: Any, **extra: Any) -> dict[str, Any]:
    """Return the columns of a record (a dataclass instance), and ``extra`` ones such as its id."""
    row: dict[str, Any] = dict(extra)
    for field in dataclasses.fields(record):
        value, column = getattr(record, field.name), COLUMNS.get(field.name, field.name)
        if isinstance(value, (str, int, float, type(None))):
            row[column] = int(value) if isinstance(value, bool) else value
        else:
            row[f"{column}_json"] = to_json(value)
    return row


def from_row(cls: type[T], row: Mapping[str, Any]) -> T:
    """Return the record of a row. A column without a field is ignored: a newer version may have added it."""
    data: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if f"{field.name}_json" in row:
            data[field.name] = json.loads(row[f"{field.name}_json"])
        elif (column := COLUMNS.get(field.name, field.name)) in row:
            value = row[column]
            data[field.name] = bool(value) if field.type == "bool" else value
    return from_plain(cls, data)


Parameters = Sequence[Any] | Mapping[str, Any]


class Database:
    """One SQLite connection. Whoever opens it says what a transaction is."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.conn = conn
        conn.execute("PRAGMA recursive_triggers=on")  # the text index hears of rows that an insert replaces

    def execute(self, sql: str, parameters: Parameters = ()) -> sqlite3.Cursor:
        return self.conn.execute(sql, parameters)

    def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        """Return the rows of a SELECT, each by column name."""
        cursor = self.execute(sql, parameters)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def insert(
        self, table: str, row: Mapping[str, Any], on_conflict: Literal["ABORT", "IGNORE", "REPLACE"] = "ABORT"
    ) -> None:
        """Insert a row. ``on_conflict`` is what happens to one whose key is there."""
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        self.execute(f'INSERT OR {on_conflict} INTO "{table}" ({names}) VALUES ({marks})', list(row.values()))
