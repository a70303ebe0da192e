"""Slow-fast pairs: what was accepted, found again by what a kernel looks like."""

from __future__ import annotations

import json
from functools import lru_cache

from accelopt_memory.connection import Connection
from accelopt_memory.features import KernelFeatures
from accelopt_memory.records import Match, Pair
from accelopt_memory.rows import from_row, insert_record
from accelopt_memory.similarity import similarity
from accelopt_profiling.plain import from_plain


def add_pair(connection: Connection, pair: Pair) -> str:
    with connection.writing() as db:
        return insert_record(db, "pairs", pair)


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
        query = "SELECT id, features_json FROM pairs WHERE dialect = ?"
        rows = db.execute(query, [features.dialect]).fetchall()
    scores = [(similarity(features, _features(text)), pair_id) for pair_id, text in rows]
    best = sorted((-score, pair_id) for score, pair_id in scores if score >= least)[:limit]
    found = [(one_pair(connection, pair_id), -score) for score, pair_id in best]
    return [Match(pair, score) for pair, score in found if pair is not None]


@lru_cache(maxsize=8192)
def _features(text: str) -> KernelFeatures:
    """Features from their JSON. Those of a pair never change, and every search asks for them again."""
    return from_plain(KernelFeatures, json.loads(text))
