"""Finds the pairs that may be most similar to a kernel among many, from a sketch of 512 bits for each.

A sketch has one bit for each hash of what the features count (``features.KernelFeatures``), in a field of its own for
each part; the Jaccard index of two fields estimates that of the parts. It only chooses whom to compare exactly.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accelopt_memory.database import Database
from accelopt_memory.features import KernelFeatures
from accelopt_profiling.plain import from_plain

if TYPE_CHECKING:
    import numpy as np

#: The 64-bit words of each field, and what its Jaccard index counts (``similarity.WEIGHTS``).
FIELDS = {"calls": (4, 0.45), "shingles": (3, 0.30), "rest": (1, 0.15)}
WORDS = sum(words for words, _ in FIELDS.values())
#: So many of a kernel's shingles, the smallest, are in its sketch.
SHINGLES = 48


def sketch(features: KernelFeatures) -> bytes:
    """Return the sketch of a kernel, ``WORDS`` little-endian words."""
    parts = {
        "calls": [f"{name} {k}" for name, count in features.calls.items() for k in range(min(count, 16))],
        "shingles": list(features.shingles[:SHINGLES]),
        "rest": [
            f"{kind} {k}"
            for kind, names in (("loop", features.loops), ("dtype", features.dtypes))
            for k in names
        ],
    }
    packed = b""
    for name, (words, _) in FIELDS.items():
        bits = 0
        for item in parts[name]:
            digest = hashlib.blake2s(item.encode("utf-8", "surrogatepass"), digest_size=4).digest()
            bits |= 1 << (int.from_bytes(digest, "little") % (64 * words))
        packed += bits.to_bytes(8 * words, "little")
    return packed


@dataclass
class _Sketches:
    """The rows of one dialect: their numbers, ascending, and sketches."""

    numbers: np.ndarray[Any, Any]
    bits: np.ndarray[Any, Any]
    state: tuple[int, ...] = field(default=())


class PairIndex:
    """The sketches of the pairs in one database, kept in memory by dialect and read again when it has changed."""

    def __init__(self) -> None:
        self._dialects: dict[str, _Sketches] = {}

    def nearest(self, db: Database, features: KernelFeatures, count: int) -> list[int]:
        """Return the row numbers of the ``count`` pairs of the dialect whose sketches are most similar."""
        import numpy as np

        known = self._read(db, features.dialect)
        if not len(known.numbers):
            return []
        query = np.frombuffer(sketch(features), dtype="<u8")
        score = np.zeros(len(known.numbers), dtype=np.float32)
        first = 0
        for words, weight in FIELDS.values():
            score += weight * _jaccard(known.bits[:, first : first + words], query[first : first + words])
            first += words
        if len(score) > count:
            best = np.argpartition(-score, count)[:count]
        else:
            best = np.arange(len(score))
        return [int(number) for number in known.numbers[best]]

    def _read(self, db: Database, dialect: str) -> _Sketches:
        import numpy as np

        version = int(db.execute("PRAGMA data_version").fetchone()[0])
        state = (id(db.conn), version, db.conn.total_changes)
        known = self._dialects.get(dialect)
        if known is not None and known.state == state:
            return known
        if known is None or known.state[0] != state[0]:
            known = _Sketches(np.zeros(0, dtype=np.int64), np.zeros((0, WORDS), dtype="<u8"))
        last = int(known.numbers[-1]) if len(known.numbers) else -1
        added = _rows(db, dialect, last)
        if len(known.numbers) + len(added) != _count(db, dialect):  # some were deleted
            known = _Sketches(np.zeros(0, dtype=np.int64), np.zeros((0, WORDS), dtype="<u8"))
            added = _rows(db, dialect, -1)
        if added:
            bits = np.frombuffer(b"".join(row[1] for row in added), dtype="<u8").reshape(-1, WORDS)
            numbers = np.array([row[0] for row in added], dtype=np.int64)
            known = _Sketches(np.concatenate([known.numbers, numbers]), np.concatenate([known.bits, bits]))
        known.state = state
        self._dialects[dialect] = known
        return known


def _rows(db: Database, dialect: str, after: int) -> list[tuple[int, bytes]]:
    """Return the numbers and sketches of rows above ``after``; an older version stored none, and they are made here."""
    query = (
        "SELECT number, sketch, CASE WHEN sketch IS NULL THEN features_json END FROM pairs "
        "WHERE dialect = ? AND number > ? ORDER BY number"
    )
    return [
        (number, stored if stored else sketch(from_plain(KernelFeatures, json.loads(text))))
        for number, stored, text in db.execute(query, [dialect, after])
    ]


def _count(db: Database, dialect: str) -> int:
    return int(db.execute("SELECT count(*) FROM pairs WHERE dialect = ?", [dialect]).fetchone()[0])


def _jaccard(rows: np.ndarray[Any, Any], query: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    both, either = _ones(rows & query), _ones(rows | query)
    return np.where(either, both / np.maximum(either, 1), 0).astype(np.float32)


def _ones(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the number of set bits of each row."""
    import numpy as np

    if hasattr(np, "bitwise_count"):  # NumPy 2
        counts: np.ndarray[Any, Any] = np.bitwise_count(words).sum(axis=1, dtype=np.int32)
        return counts
    table = np.array([bin(k).count("1") for k in range(256)], dtype=np.uint8)
    found: np.ndarray[Any, Any] = table[np.ascontiguousarray(words).view(np.uint8)].sum(
        axis=1, dtype=np.int32
    )
    return found


def chosen_rows(db: Database, numbers: Sequence[int]) -> list[tuple[str, str]]:
    """Return id and features (JSON) of the rows of these numbers."""
    marks = ", ".join("?" * len(numbers))
    rows = db.execute(f"SELECT id, features_json FROM pairs WHERE number IN ({marks})", list(numbers))
    return [(row[0], row[1]) for row in rows]
