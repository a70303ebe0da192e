"""What must not be tried or shown again: traps (the gate or the clock said no) and rejections (a person
did)."""

from __future__ import annotations

from typing import TypeVar

from accelopt_memory.connection import Connection
from accelopt_memory.records import Rejection, Trap
from accelopt_memory.rows import from_row, insert_record, storable

R = TypeVar("R", Trap, Rejection)


def add_trap(connection: Connection, trap: Trap) -> str:
    with connection.writing() as db:
        return insert_record(db, "traps", trap)


def traps_of(connection: Connection, kernel_hash: str | None) -> list[Trap]:
    """Oldest first; of every kernel when ``kernel_hash`` is None."""
    return _of_kernel(connection, Trap, "traps", kernel_hash)


def add_rejection(connection: Connection, rejection: Rejection) -> str:
    with connection.writing() as db:
        return insert_record(db, "rejections", rejection)


def rejections_of(connection: Connection, kernel_hash: str | None) -> list[Rejection]:
    """Oldest first; of every kernel when ``kernel_hash`` is None."""
    return _of_kernel(connection, Rejection, "rejections", kernel_hash)


def _of_kernel(connection: Connection, cls: type[R], table: str, kernel_hash: str | None) -> list[R]:
    where, values = ("", []) if kernel_hash is None else ("WHERE kernel_hash = ?", [storable(kernel_hash)])
    with connection.reading() as db:
        rows = db.query(f"SELECT * FROM {table} {where} ORDER BY number", values)
        return [from_row(cls, row) for row in rows]
