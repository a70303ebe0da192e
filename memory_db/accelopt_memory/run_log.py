"""Searches and their events, written as they happen so that a killed search can be resumed where it was."""

from __future__ import annotations

import json
import secrets
from typing import Any

from accelopt_memory.connection import Connection
from accelopt_memory.records import Run, RunEvent, RunStatus
from accelopt_memory.rows import from_row, now, storable, storable_record, to_json, to_row


class RunLog:
    """The runs in one database. Threads and errors as in ``memory.Memory``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def start(
        self,
        file: str,
        kernel: str,
        kernel_hash: str,
        target: str,
        host: str = "local",
        options: dict[str, Any] | None = None,
    ) -> str:
        """Record that a search began and return its id."""
        run = Run(
            secrets.token_hex(6),
            file,
            kernel=kernel,
            kernel_hash=kernel_hash,
            target=target,
            host=host,
            options=options or {},
            started=now(),
        )
        with self._connection.writing() as db:
            db.insert("runs", to_row(storable_record(run)))
        return run.id

    def add_event(self, run: str, kind: str, data: dict[str, Any], key: str | None = None) -> int:
        """Append an event and return its number, from 1.

        With a ``key`` that the run has already, nothing is added and that event's number is returned.

        Raises:
            KeyError: there is no such run.
        """
        kind, key = storable(kind), None if key is None else storable(key)
        with self._connection.writing() as db:
            if not db.execute("SELECT 1 FROM runs WHERE id = ?", [run]).fetchone():
                raise KeyError(f"The memory has no run {run}.")
            if key is not None:
                before = db.execute(
                    "SELECT number FROM run_events WHERE run = ? AND key = ?", [run, key]
                ).fetchone()
                if before:
                    return int(before[0])
            last = db.execute("SELECT max(number) FROM run_events WHERE run = ?", [run]).fetchone()[0]
            number = (last or 0) + 1
            row = {"run": run, "number": number, "kind": kind, "key": key, "data_json": to_json(data)}
            db.insert("run_events", {**row, "created": now()})
            return int(number)

    def finish(self, run: str, status: RunStatus = "finished", result: dict[str, Any] | None = None) -> None:
        """Record how a search ended. Raises KeyError: there is no such run."""
        with self._connection.writing() as db:
            changed = db.execute(
                "UPDATE runs SET status = ?, finished = ?, result_json = ? WHERE id = ?",
                [status, now(), to_json(result or {}), run],
            ).rowcount
            if not changed:
                raise KeyError(f"The memory has no run {run}.")

    def run(self, run: str) -> Run | None:
        with self._connection.reading() as db:
            rows = [from_row(Run, row) for row in db.query("SELECT * FROM runs WHERE id = ?", [run])]
        return rows[0] if rows else None

    def runs(self, kernel_hash: str | None = None, status: RunStatus | None = None) -> list[Run]:
        """Newest first; None means any.

        A run whose process was killed stays "running", which is how it is recognised when it is resumed.
        """
        query = (
            "SELECT * FROM runs WHERE (:hash IS NULL OR kernel_hash = :hash) "
            "AND (:status IS NULL OR status = :status) ORDER BY number DESC"
        )
        with self._connection.reading() as db:
            rows = db.query(query, {"hash": kernel_hash, "status": status})
            return [from_row(Run, row) for row in rows]

    def events(self, run: str, after: int = 0) -> list[RunEvent]:
        """Return the run's events with a number above ``after``, in order."""
        query = "SELECT * FROM run_events WHERE run = ? AND number > ? ORDER BY number"
        with self._connection.reading() as db:
            return [
                RunEvent(
                    r["run"],
                    r["number"],
                    kind=r["kind"],
                    data=json.loads(r["data_json"]),
                    key=r["key"],
                    created=r["created"],
                )
                for r in db.query(query, [run, after])
            ]
