"""Keeps a sketch of each kernel that something failed on, so that failures of like kernels are found."""

from __future__ import annotations

from accelopt_memory.connection import Connection
from accelopt_memory.features import KernelFeatures
from accelopt_memory.pair_index import FIELDS, sketch
from accelopt_memory.rows import storable


class KernelSketches:
    """The sketches of kernels in one database, by content hash. Threads and errors as in ``memory.Memory``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def note(self, kernel_hash: str, features: KernelFeatures) -> None:
        """Keep the sketch of a kernel; noting it again changes nothing."""
        row = {"hash": storable(kernel_hash), "dialect": features.dialect, "sketch": sketch(features)}
        with self._connection.writing() as db:
            db.insert("kernels", row, "IGNORE")

    def nearest(self, features: KernelFeatures, count: int, least: float) -> list[tuple[str, float]]:
        """Return content hash and estimated similarity (0..1) of the ``count`` kernels of the dialect that are most
        similar, at least ``least``; most similar first, ties by hash."""
        with self._connection.reading() as db:
            query = "SELECT hash, sketch FROM kernels WHERE dialect = ?"
            rows = db.execute(query, [features.dialect]).fetchall()
        own = _fields(sketch(features))
        scores = [(-_similarity(own, _fields(stored)), kernel_hash) for kernel_hash, stored in rows]
        return [(kernel_hash, -score) for score, kernel_hash in sorted(scores)[:count] if -score >= least]


def _fields(packed: bytes) -> list[int]:
    fields, first = [], 0
    for words, _ in FIELDS.values():
        fields.append(int.from_bytes(packed[first : first + 8 * words], "little"))
        first += 8 * words
    return fields


def _similarity(a: list[int], b: list[int]) -> float:
    """Return the weighted mean of the fields' Jaccard indices; fields that are empty in both are left out."""
    known = [
        (weight, (x & y).bit_count() / (x | y).bit_count())
        for x, y, (_, weight) in zip(a, b, FIELDS.values(), strict=True)
        if x | y
    ]
    total = sum(weight for weight, _ in known)
    return sum(weight * score for weight, score in known) / total if total else 0.0
