"""The last profile of each content, so that opening a file shows numbers at once. Bounded in size and age."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from accelopt_memory.connection import Connection
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.rows import to_json

ENTRY_BYTES = 4 << 20
TOTAL_BYTES = 64 << 20
AGE_SECONDS = 30 * 24 * 3600.0
#: A read updates the time of last use at most this often: most reads then need no write.
TOUCH_SECONDS = 3600.0


class ProfileCache:
    """Values by a hash of everything they depend on. Threads and errors as in ``memory.Memory``."""

    def __init__(self, connection: Connection, total_bytes: int = TOTAL_BYTES) -> None:
        self._connection, self._total_bytes = connection, total_bytes

    def get(self, key: str) -> Any | None:
        """Return the plain value stored under ``key``.

        None when there is none, or it was not used for 30 days.
        """
        now = time.time()
        with self._connection.reading() as db:
            row = db.execute("SELECT value_json, used FROM profile_cache WHERE key = ?", [key]).fetchone()
        if row is None or row[1] < now - AGE_SECONDS:
            return None
        if not self._connection.read_only and row[1] < now - TOUCH_SECONDS:
            # A value that was read is returned even where its use cannot be written down.
            with contextlib.suppress(MemoryUnavailableError), self._connection.writing() as db:
                db.execute("UPDATE profile_cache SET used = ? WHERE key = ?", [now, key])
        return json.loads(row[0])

    def put(self, key: str, value: Any) -> bool:
        """Store plain data or dataclasses under ``key``.

        False when it is larger than an entry may be.

        When the cache is full, the entries that were not used for the longest time are deleted.
        """
        text = to_json(value)
        size = len(text.encode())
        if size > ENTRY_BYTES:
            return False
        now = time.time()
        with self._connection.writing() as db:
            row = {"key": key, "value_json": text, "bytes": size, "used": now}
            db.insert("profile_cache", row, "REPLACE")
            db.execute("DELETE FROM profile_cache WHERE used < ?", [now - AGE_SECONDS])
            db.execute(
                "DELETE FROM profile_cache WHERE key IN (SELECT key FROM (SELECT key, "
                "sum(bytes) OVER (ORDER BY used DESC, key) AS held FROM profile_cache) WHERE held > ?)",
                [self._total_bytes],
            )
        return True
