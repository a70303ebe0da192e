"""Suggestions as the search saved them, so that an id means the same after a restart and in another
program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from accelopt_memory.connection import Connection
from accelopt_memory.records import StoredSuggestion, SuggestionState
from accelopt_memory.rows import now, storable, to_json


def save_suggestion(connection: Connection, body: Mapping[str, Any]) -> str:
    """Save a suggestion's plain data under its own ``id``; saved again, its body is replaced and its state
    kept.

    Raises:
        ValueError: it lacks ``id``, ``file`` or ``base_hash``.
    """
    missing = [name for name in ("id", "file", "base_hash") if not isinstance(body.get(name), str)]
    if missing:
        raise ValueError(f"A suggestion needs {', '.join(missing)} to be saved.")
    texts = [storable(str(body.get(name, ""))) for name in ("id", "run", "file", "base_hash")]
    with connection.writing() as db:
        db.execute(
            "INSERT INTO suggestions (id, run, file, kernel_hash, state, body_json, created) "
            "VALUES (?, ?, ?, ?, 'offered', ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET body_json = excluded.body_json",
            [*texts, to_json(dict(body)), now()],
        )
    return texts[0]


def one_suggestion(connection: Connection, suggestion: str) -> StoredSuggestion | None:
    with connection.reading() as db:
        found = [_stored(row) for row in db.query("SELECT * FROM suggestions WHERE id = ?", [suggestion])]
    return found[0] if found else None


def suggestions_for(
    connection: Connection, file: str | None, kernel_hash: str | None, state: SuggestionState | None
) -> list[StoredSuggestion]:
    """Oldest first; None means any."""
    query = (
        "SELECT * FROM suggestions WHERE (:file IS NULL OR file = :file) "
        "AND (:hash IS NULL OR kernel_hash = :hash) AND (:state IS NULL OR state = :state) ORDER BY number"
    )
    with connection.reading() as db:
        rows = db.query(
            query, {"file": None if file is None else storable(file), "hash": kernel_hash, "state": state}
        )
        return [_stored(row) for row in rows]


def set_state(connection: Connection, suggestion: str, state: SuggestionState) -> None:
    """Raises KeyError: there is no such suggestion."""
    with connection.writing() as db:
        if not db.execute("UPDATE suggestions SET state = ? WHERE id = ?", [state, suggestion]).rowcount:
            raise KeyError(f"The memory has no suggestion {suggestion}.")


def _stored(row: Mapping[str, Any]) -> StoredSuggestion:
    return StoredSuggestion(row["id"], json.loads(row["body_json"]), row["state"], row["created"])
