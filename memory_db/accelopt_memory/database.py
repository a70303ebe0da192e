"""The few things that the memory asks of SQLite: statements, rows as dictionaries, and inserts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Literal

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
