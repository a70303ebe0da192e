"""Runs and their events, written as they happen so that a killed search can go on where it was."""

from __future__ import annotations

import json
import secrets
from typing import Any

from accelopt_memory.connection import Connection
from accelopt_memory.records import Run, RunEvent, RunStatus
from accelopt_memory.rows import from_row, now, storable, storable_record, to_json, to_row


def start_run(
    connection: Connection,
    file: str,
    kernel: str,
    kernel_hash: str,
    target: str,
    host: str,
    options: dict[str, Any],
) -> str:
    run = Run(secrets.token_hex(6), file, kernel, kernel_hash, target, host, options, started=now())
    with connection.writing() as db:
        db.table("runs").insert(to_row(storable_record(run)))
    return run.id


def add_event(connection: Connection, run: str, kind: str, data: dict[str, Any], key: str | None) -> int:
    """Append an event and return its number. A ``key`` the run already has changes nothing: its number
    comes back.

    Raises:
        KeyError: there is no such run.
    """
    kind, key = storable(kind), None if key is None else storable(key)
    with connection.writing() as db:
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
        db.table("run_events").insert({**row, "created": now()})
        return int(number)


def finish_run(connection: Connection, run: str, status: RunStatus, result: dict[str, Any]) -> None:
    """Raises KeyError: there is no such run."""
    with connection.writing() as db:
        changed = db.execute(
            "UPDATE runs SET status = ?, finished = ?, result_json = ? WHERE id = ?",
            [status, now(), to_json(result), run],
        ).rowcount
        if not changed:
            raise KeyError(f"The memory has no run {run}.")


def one_run(connection: Connection, run: str) -> Run | None:
    with connection.reading() as db:
        found = [from_row(Run, row) for row in db.query("SELECT * FROM runs WHERE id = ?", [run])]
    return found[0] if found else None


def all_runs(connection: Connection, kernel_hash: str | None, status: RunStatus | None) -> list[Run]:
    """Newest first."""
    query = (
        "SELECT * FROM runs WHERE (:hash IS NULL OR kernel_hash = :hash) "
        "AND (:status IS NULL OR status = :status) ORDER BY number DESC"
    )
    with connection.reading() as db:
        rows = db.query(query, {"hash": kernel_hash, "status": status})
        return [from_row(Run, row) for row in rows]


def events_of(connection: Connection, run: str, after: int) -> list[RunEvent]:
    query = "SELECT * FROM run_events WHERE run = ? AND number > ? ORDER BY number"
    with connection.reading() as db:
        return [
            RunEvent(r["run"], r["number"], r["kind"], json.loads(r["data_json"]), r["key"], r["created"])
            for r in db.query(query, [run, after])
        ]
