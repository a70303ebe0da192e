"""The last profile of each content, so that opening a file shows numbers at once. Bounded in size and age."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from accelopt_memory.connection import Connection
from accelopt_memory.errors import MemoryUnavailable
from accelopt_memory.rows import to_json

ENTRY_BYTES = 4 << 20
TOTAL_BYTES = 64 << 20
AGE_SECONDS = 30 * 24 * 3600.0
#: A read counts as a use at most this often: most reads then need no write.
TOUCH_SECONDS = 3600.0


def cached(connection: Connection, key: str) -> Any | None:
    """The value stored under ``key``, None when there is none or it is too old."""
    now = time.time()
    with connection.reading() as db:
        row = db.execute("SELECT value_json, used FROM profile_cache WHERE key = ?", [key]).fetchone()
    if row is None or row[1] < now - AGE_SECONDS:
        return None
    if not connection.read_only and row[1] < now - TOUCH_SECONDS:
        with (
            contextlib.suppress(MemoryUnavailable),
            connection.writing() as db,
        ):  # what is known is known all the same
            db.execute("UPDATE profile_cache SET used = ? WHERE key = ?", [now, key])
    return json.loads(row[0])


def cache(connection: Connection, key: str, value: Any, total_bytes: int = TOTAL_BYTES) -> bool:
    """Store plain data or dataclasses under ``key``; False when it is larger than an entry may be.

    What was not used for the longest time goes first when the cache is full.
    """
    text = to_json(value)
    size = len(text.encode())
    if size > ENTRY_BYTES:
        return False
    now = time.time()
    with connection.writing() as db:
        row = {"key": key, "value_json": text, "bytes": size, "used": now}
        db.table("profile_cache").insert(row, replace=True)
        db.execute("DELETE FROM profile_cache WHERE used < ?", [now - AGE_SECONDS])
        db.execute(
            "DELETE FROM profile_cache WHERE key IN (SELECT key FROM (SELECT key, "
            "sum(bytes) OVER (ORDER BY used DESC, key) AS held FROM profile_cache) WHERE held > ?)",
            [total_bytes],
        )
    return True
