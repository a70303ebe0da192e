"""What must not be tried or shown again: traps (the gate or the clock said no) and rejections (a person
did)."""

from __future__ import annotations

import dataclasses

from accelopt_memory.connection import Connection
from accelopt_memory.records import Rejection, Trap
from accelopt_memory.rows import from_row, now, to_row


def add_trap(connection: Connection, trap: Trap) -> str:
    with connection.writing() as db:
        dated = dataclasses.replace(trap, created=trap.created or now())
        db.table("traps").insert(to_row(dated, id=trap.id), ignore=True)
    return trap.id


def traps_of(connection: Connection, kernel_hash: str | None) -> list[Trap]:
    """Oldest first; of every kernel when ``kernel_hash`` is None."""
    where, values = ("WHERE kernel_hash = ?", [kernel_hash]) if kernel_hash is not None else ("", [])
    with connection.reading() as db:
        return [
            from_row(Trap, row) for row in db.query(f"SELECT * FROM traps {where} ORDER BY number", values)
        ]


def add_rejection(connection: Connection, rejection: Rejection) -> str:
    with connection.writing() as db:
        dated = dataclasses.replace(rejection, created=rejection.created or now())
        db.table("rejections").insert(to_row(dated, id=rejection.id), ignore=True)
    return rejection.id


def rejections_of(connection: Connection, kernel_hash: str | None) -> list[Rejection]:
    """Oldest first; of every kernel when ``kernel_hash`` is None."""
    where, values = ("WHERE kernel_hash = ?", [kernel_hash]) if kernel_hash is not None else ("", [])
    query = f"SELECT * FROM rejections {where} ORDER BY number"
    with connection.reading() as db:
        return [from_row(Rejection, row) for row in db.query(query, values)]
