"""Finds the pairs, and the kernels that something failed on, that may be most similar to a kernel among many, from a
sketch of 512 bits for each.

A sketch has one bit for each hash of what the features count (``features.KernelFeatures``), in a field of its own for
each part; the Jaccard index of two fields estimates that of the parts. It only chooses whose packed features
(``feature_pack``) are compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from accelopt_memory.feature_pack import fixed_row, pack, similarities
from accelopt_memory.features import KernelFeatures
from accelopt_memory.rows import Database
from accelopt_profiling.plain import from_plain

if TYPE_CHECKING:
    import numpy as np
from accelopt_memory.connection import Connection
from accelopt_memory.rows import storable

#: The 64-bit words of each field, and what its Jaccard index counts (``similarity.WEIGHTS``).
FIELDS = {"calls": (slice(0, 4), 0.45), "shingles": (slice(4, 7), 0.30), "rest": (slice(7, 8), 0.15)}
WORDS = 8
#: So many rows, or twice as many as are asked for, are compared by their packed features.
SHORTLIST = 64
#: Above so many rows the packed features are read when they are needed.
MOST_ROWS = 200_000
#: Above so many rows the calls of each, folded into one word, choose so many rows whose sketches are compared.
COARSE_FROM, COARSE_KEPT = 24_000, 4096
#: The least similarity of folded words that counts.
_LEAST = 0.01
#: So many rows are looked at to learn how similar the best are, and so many are compared at a time.
SAMPLE, BLOCK = 4096, 16_384


def sketch(features: KernelFeatures) -> bytes:
    """Return the sketch of a kernel, ``WORDS`` little-endian words."""
    parts = {
        "calls": [f"{name} {k}" for name, count in features.calls.items() for k in range(min(count, 16))],
        "shingles": list(features.shingles),
        "rest": [
            f"{kind} {k}"
            for kind, names in (("loop", features.loops), ("dtype", features.dtypes))
            for k in names
        ],
    }
    packed = b""
    for name, (span, _) in FIELDS.items():
        bits, words = 0, span.stop - span.start
        for item in parts[name]:
            digest = hashlib.blake2s(item.encode("utf-8", "surrogatepass"), digest_size=4).digest()
            bits |= 1 << (int.from_bytes(digest, "little") % (64 * words))
        packed += bits.to_bytes(8 * words, "little")
    return packed


@dataclass
class _Sketches:
    """The rows of one dialect: their numbers, ascending, with their ids (SQLite gives the number of a deleted row
    again), the words of their sketches, how many bits each field has, the words of the calls folded into one, how many
    bits that has, and the packed features (``feature_pack.fixed_row``) unless there are too many."""

    ids: list[tuple[int, str]]
    numbers: np.ndarray[Any, Any]
    words: np.ndarray[Any, Any]
    sizes: np.ndarray[Any, Any]
    folded: np.ndarray[Any, Any]
    folded_sizes: np.ndarray[Any, Any]
    rows: list[bytes] | None
    state: tuple[int, ...] = ()

    def __add__(self, later: _Sketches) -> _Sketches:
        import numpy as np

        return _Sketches(
            self.ids + later.ids,
            np.concatenate([self.numbers, later.numbers]),
            words=np.concatenate([self.words, later.words]),
            sizes=np.concatenate([self.sizes, later.sizes]),
            folded=np.concatenate([self.folded, later.folded]),
            folded_sizes=np.concatenate([self.folded_sizes, later.folded_sizes]),
            rows=None if self.rows is None or later.rows is None else self.rows + later.rows,
        )


class _Comparison:
    """Compares a sketch with many, ``BLOCK`` at a time in arrays that are kept: to allocate them anew takes several
    times as long as what is computed in them. One thread at a time.
    """

    def __init__(self) -> None:
        import numpy as np

        self._shared = np.empty((BLOCK, WORDS), dtype="<u8")
        self._counts = np.empty((BLOCK, WORDS), dtype=np.float32)
        self._field_of_word = np.zeros((WORDS, len(FIELDS)), dtype=np.float32)
        for number, (span, _) in enumerate(FIELDS.values()):
            self._field_of_word[span, number] = 1
        self._weights = np.array([65535 * weight for _, weight in FIELDS.values()], dtype=np.float32)

    def field_sizes(self, words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return how many bits each field of each row has."""
        import numpy as np

        sizes = np.empty((len(words), len(FIELDS)), dtype=np.float32)
        for first in range(0, len(words), BLOCK):
            block = words[first : first + BLOCK]
            counts = self._counts[: len(block)]
            counts[:] = _ones(block)
            np.matmul(counts, self._field_of_word, out=sizes[first : first + BLOCK])
        return sizes

    def scores(
        self, sketches: _Sketches, own: np.ndarray[Any, Any], places: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """Return the estimated similarity of the rows at ``places``, up to 65535: whole numbers are sorted faster."""
        import numpy as np

        own_sizes, scores = self.field_sizes(own), np.empty(len(places), dtype=np.uint16)
        for first in range(0, len(places), BLOCK):
            block = places[first : first + BLOCK]
            shared = self._shared[: len(block)]
            np.take(sketches.words, block, axis=0, out=shared, mode="clip")
            both = self.field_sizes(np.bitwise_and(shared, own, out=shared))
            either = np.take(sketches.sizes, block, axis=0)
            either += own_sizes - both
            both /= np.maximum(either, 1, out=either)
            scores[first : first + BLOCK] = both @ self._weights
        return scores


class PairIndex:
    """The sketches of the pairs in one database, kept in memory by dialect and read again when it has changed."""

    def __init__(self) -> None:
        self._dialects: dict[str, _Sketches] = {}

    @cached_property
    def _comparison(self) -> _Comparison:
        return _Comparison()

    def nearest(self, db: Database, features: KernelFeatures, count: int) -> list[tuple[int, float]]:
        """Return the row numbers and similarities of the ``count`` most similar pairs of the dialect, most similar
        first: those whose sketches are nearest, compared by their features."""
        import numpy as np

        sketches = self._read(db, features.dialect)
        if not len(sketches.numbers):
            return []
        near = self._shortlist(sketches, sketch(features), max(SHORTLIST, 2 * count))
        if sketches.rows is not None:
            rows = [sketches.rows[k] for k in near]
        else:
            stored = _packed(db, sketches.numbers[near])
            rows = [fixed_row(stored[int(n)]) for n in sketches.numbers[near]]
        scores = similarities(features, rows)
        best = np.lexsort((near, -scores))[:count]
        return [(int(sketches.numbers[near[k]]), float(scores[k])) for k in best]

    def _shortlist(self, sketches: _Sketches, query: bytes, count: int) -> np.ndarray[Any, Any]:
        """Return the places of the ``count`` rows with the nearest sketches, ascending."""
        import numpy as np

        own = np.frombuffer(query, dtype="<u8")[None]
        many = len(sketches.numbers) > COARSE_FROM
        places = _coarse(sketches, own) if many else np.arange(len(sketches.numbers))
        if len(places) > count:
            scores = self._comparison.scores(sketches, own, places)
            places = places[np.argpartition(scores, -count)[-count:]]
        return np.sort(places)

    def _gathered(
        self, ids: list[tuple[int, str]], rows: Sequence[tuple[int, bytes, bytes]], count: int
    ) -> _Sketches:
        import numpy as np

        numbers = np.array([row[0] for row in rows], dtype=np.int64)
        words = np.frombuffer(b"".join(row[1] for row in rows), dtype="<u8").reshape(-1, WORDS)
        folded = _folded(words)
        fixed = [fixed_row(row[2]) for row in rows] if count <= MOST_ROWS else None
        sizes = self._comparison.field_sizes(words)
        return _Sketches(
            ids,
            numbers,
            words=words,
            sizes=sizes,
            folded=folded,
            folded_sizes=_ones(folded).astype(np.float32),
            rows=fixed,
        )

    def _read(self, db: Database, dialect: str) -> _Sketches:
        version = int(db.execute("PRAGMA data_version").fetchone()[0])
        state = (id(db.conn), version, db.conn.total_changes)
        sketches = self._dialects.get(dialect)
        if sketches is not None and sketches.state == state:
            return sketches
        ids = _ids(db, dialect)
        count = len(ids)
        if sketches is None or sketches.ids != ids[: len(sketches.ids)]:
            sketches = self._gathered([], [], count)
        added = ids[len(sketches.ids) :]
        if added:
            rows = _rows(db, dialect, added[0][0], packed=sketches.rows is not None and count <= MOST_ROWS)
            sketches += self._gathered(added, rows, count)
        sketches.state = state
        self._dialects[dialect] = sketches
        return sketches


def _folded(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the words of the calls of each row, joined into one."""
    import numpy as np

    folded: np.ndarray[Any, Any] = np.bitwise_or.reduce(words[:, FIELDS["calls"][0]], axis=1)
    return folded


def _coarse(sketches: _Sketches, own: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the places of about ``COARSE_KEPT`` rows with the nearest calls, of a kernel without calls all. How near
    that is a sample of the rows tells."""
    import numpy as np

    folded, sizes = sketches.folded, sketches.folded_sizes
    mine = _folded(own)
    if not mine[0]:
        return np.arange(len(folded))
    size = _ones(mine).astype(np.float32)
    step = max(1, len(folded) // SAMPLE)
    shared = _ones(folded[::step] & mine)
    sample = np.sort(shared / np.maximum(sizes[::step] + size - shared, 1))
    least = max(sample[max(0, int(len(sample) * (1 - COARSE_KEPT / len(folded))) - 1)], _LEAST)
    near = []
    for first in range(0, len(folded), BLOCK):
        block = slice(first, first + BLOCK)
        # shared / (a + b - shared) >= least
        enough = _ones(folded[block] & mine) * np.float32((1 + least) / least) >= sizes[block] + size
        near.append(np.flatnonzero(enough) + first)
    return np.concatenate(near)


def _rows(db: Database, dialect: str, first: int, *, packed: bool) -> list[tuple[int, bytes, bytes]]:
    """Return number, sketch and packed features of the rows from ``first`` on.

    Of rows that an older version stored they are made here. Not ``packed``: the last is empty.
    """
    query = (
        f"SELECT number, sketch, {'packed' if packed else 'NULL'}, "
        "CASE WHEN packed IS NULL OR sketch IS NULL THEN features_json END FROM pairs "
        "WHERE dialect = ? AND number >= ? ORDER BY number"
    )
    rows = []
    for number, stored, packed_features, text in db.execute(query, [dialect, first]):
        if text is not None:
            features = from_plain(KernelFeatures, json.loads(text))
            stored, packed_features = sketch(features), pack(features)[0]
        rows.append((number, stored, packed_features or b""))
    return rows


def _packed(db: Database, numbers: np.ndarray[Any, Any]) -> dict[int, bytes]:
    """Return the packed features of these rows."""
    marks = ", ".join("?" * len(numbers))
    query = (
        "SELECT number, packed, CASE WHEN packed IS NULL THEN features_json END FROM pairs "
        f"WHERE number IN ({marks})"
    )
    return {
        number: packed if packed is not None else pack(from_plain(KernelFeatures, json.loads(text)))[0]
        for number, packed, text in db.execute(query, [int(n) for n in numbers])
    }


def _ids(db: Database, dialect: str) -> list[tuple[int, str]]:
    """Return number and id of every row, ascending: what tells whether rows that were read are still those."""
    query = "SELECT number, id FROM pairs WHERE dialect = ? ORDER BY number"
    return [(number, name) for number, name in db.execute(query, [dialect])]


def _ones(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the number of set bits of each word."""
    import numpy as np

    if hasattr(np, "bitwise_count"):  # NumPy 2
        counts: np.ndarray[Any, Any] = np.bitwise_count(words)
        return counts
    table = np.array([bin(k).count("1") for k in range(256)], dtype=np.uint8)
    octets = np.ascontiguousarray(words).view(np.uint8).reshape(*words.shape, 8)
    totals: np.ndarray[Any, Any] = table[octets].sum(axis=-1, dtype=np.uint8)
    return totals


class KernelSketches:
    """The sketches of kernels in one database, by content hash.

    Threads and errors as in ``memory.Memory``.
    """

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
    return [int.from_bytes(packed[8 * span.start : 8 * span.stop], "little") for span, _ in FIELDS.values()]


def _similarity(a: list[int], b: list[int]) -> float:
    """Return the weighted mean of the fields' Jaccard indices. Fields that are empty in both are left out."""
    parts = [
        (weight, (x & y).bit_count() / (x | y).bit_count())
        for x, y, (_, weight) in zip(a, b, FIELDS.values(), strict=True)
        if x | y
    ]
    total = sum(weight for weight, _ in parts)
    return sum(weight * score for weight, score in parts) / total if total else 0.0
