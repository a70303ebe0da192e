"""Receipts: the evidence behind numbers and verdicts, by the hash of their content."""

from __future__ import annotations

import json

from accelopt_memory.connection import Connection
from accelopt_memory.rows import now, to_json
from accelopt_profiling.receipt import Receipt


def add_receipt(connection: Connection, receipt: Receipt) -> str:
    with connection.writing() as db:
        row = {"id": receipt.id, "kind": receipt.kind, "body_json": to_json(receipt.body), "created": now()}
        db.table("receipts").insert(row, ignore=True)
    return receipt.id


def one_receipt(connection: Connection, receipt: str) -> Receipt | None:
    with connection.reading() as db:
        row = db.execute("SELECT kind, body_json FROM receipts WHERE id = ?", [receipt]).fetchone()
    return Receipt(row[0], json.loads(row[1])) if row else None
