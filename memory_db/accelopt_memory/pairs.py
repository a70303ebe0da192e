"""Slow-fast pairs: what was accepted, found again by what a kernel looks like."""

from __future__ import annotations

import dataclasses

from accelopt_memory.connection import Connection
from accelopt_memory.features import KernelFeatures
from accelopt_memory.records import Match, Pair
from accelopt_memory.rows import from_row, now, to_row
from accelopt_memory.similarity import similarity


def add_pair(connection: Connection, pair: Pair) -> str:
    with connection.writing() as db:
        dated = dataclasses.replace(pair, created=pair.created or now())
        db.table("pairs").insert(to_row(dated, id=pair.id), ignore=True)
    return pair.id


def all_pairs(connection: Connection) -> list[Pair]:
    """Oldest first."""
    with connection.reading() as db:
        return [from_row(Pair, row) for row in db.query("SELECT * FROM pairs ORDER BY number")]


def one_pair(connection: Connection, pair_id: str) -> Pair | None:
    with connection.reading() as db:
        rows = [from_row(Pair, row) for row in db.query("SELECT * FROM pairs WHERE id = ?", [pair_id])]
    return rows[0] if rows else None


def similar_pairs(connection: Connection, features: KernelFeatures, limit: int, least: float) -> list[Match]:
    """The pairs of the same dialect whose slow side is at least ``least`` alike, best first, ties by id."""
    with connection.reading() as db:
        rows = list(db.query("SELECT * FROM pairs WHERE dialect = ?", [features.dialect]))
    pairs = [from_row(Pair, row) for row in rows]
    matches = [Match(pair, similarity(features, pair.features)) for pair in pairs]
    good = [match for match in matches if match.score >= least]
    return sorted(good, key=lambda match: (-match.score, match.pair.id))[:limit]
