"""Writes the rows of pairs, and finds those most similar to a kernel.

A row holds both texts in ``sources``, the fast one compressed with the slow one as dictionary. The columns of an older
version stay: ``slow_text`` is empty, ``fast_text`` holds the words of the difference, by which the text index finds the
pair, and ``features_json`` the dialect alone. A row of an older version has no ``sources`` and is read as it is.

Pairs are compared by rows of fixed length (``features.fixed_row``), all of a dialect in one scan. Of a kernel that
something failed on a sketch of 512 bits is kept: one bit for each hash of what the features count
(``features.KernelFeatures``), in a field of its own for each part; the Jaccard index of two fields estimates that of
the parts.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accelopt_memory.connection import Connection
from accelopt_memory.features import KernelFeatures, fixed_row, pack, similarities, unpack
from accelopt_memory.records import Pair
from accelopt_memory.rows import Database, from_row, storable, storable_record, to_json
from accelopt_profiling.measurement import Latency
from accelopt_profiling.plain import from_plain
from accelopt_profiling.quantity import CounterMove, Known
from accelopt_profiling.source_text import source_lines

#: The 64-bit words of each field of a sketch, and what its Jaccard index counts (``features.WEIGHTS``).
FIELDS = {"calls": (slice(0, 4), 0.45), "shingles": (slice(4, 7), 0.30), "rest": (slice(7, 8), 0.15)}
WORDS = 8
#: So many rows are compared at a time.
BLOCK = 8192


@dataclass
class _PairRows:
    """The pairs of one dialect: numbers with ids, ascending (SQLite gives the number of a deleted row again), and rows
    (``features.fixed_row``)."""

    ids: list[tuple[int, str]]
    rows: list[bytes]
    state: tuple[int, ...]


class PairIndex:
    """The rows of the pairs in one database, kept in memory by dialect and read again when it has changed."""

    def __init__(self) -> None:
        self._dialects: dict[str, _PairRows] = {}

    def nearest(self, db: Database, features: KernelFeatures, count: int) -> list[tuple[int, float]]:
        """Return row numbers and similarities of the ``count`` pairs of the dialect most similar to ``features``.

        The most similar come first, of equal ones the older.
        """
        index = self._read(db, features.dialect)
        scores: list[float] = []
        for first in range(0, len(index.rows), BLOCK):
            scores += similarities(features, index.rows[first : first + BLOCK]).tolist()
        best = sorted(range(len(scores)), key=lambda k: -scores[k])[:count]
        return [(index.ids[k][0], scores[k]) for k in best]

    def _read(self, db: Database, dialect: str) -> _PairRows:
        version = int(db.execute("PRAGMA data_version").fetchone()[0])
        state = (id(db.conn), version, db.conn.total_changes)
        index = self._dialects.get(dialect)
        if index is not None and index.state == state:
            return index
        query = "SELECT number, id FROM pairs WHERE dialect = ? ORDER BY number"
        ids = [(number, name) for number, name in db.execute(query, [dialect])]
        before = index.rows if index is not None and index.ids == ids[: len(index.ids)] else []
        new = _rows(db, dialect, ids[len(before)][0]) if len(before) < len(ids) else []
        self._dialects[dialect] = _PairRows(ids, before + new, state)
        return self._dialects[dialect]


def _rows(db: Database, dialect: str, first: int) -> list[bytes]:
    """Return the rows of the pairs from number ``first`` on; those of an older version are packed here."""
    query = (
        "SELECT packed, CASE WHEN packed IS NULL THEN features_json END FROM pairs "
        "WHERE dialect = ? AND number >= ? ORDER BY number"
    )
    return [
        fixed_row(packed if packed is not None else pack(from_plain(KernelFeatures, json.loads(text)))[0])
        for packed, text in db.execute(query, [dialect, first])
    ]


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


#: The most words of a difference that are searched for.
MOST_WORDS = 16

_WORD = re.compile(r"[^\W\d]\w{2,}")


def pair_columns(pair: Pair) -> dict[str, Any]:
    """Return the columns of a pair that are not kept as ``rows.to_row`` would."""
    record = storable_record(pair)
    packed, names = pack(record.features)
    return {
        "slow_text": "",
        "fast_text": difference_words(record.slow_text, record.fast_text),
        "features_json": to_json({"dialect": record.features.dialect}),
        "sources": _compressed(record.slow_text, record.fast_text),
        "packed": packed,
        "names": names,
        "sketch": sketch(record.features),
    }


def pair_of_row(row: Mapping[str, Any]) -> Pair:
    """Return the pair of a row.

    One that this version wrote is read field by field: every look-up reads several.
    """
    if row.get("sources") is None:
        return from_row(Pair, row)
    slow, fast = _texts(row["sources"])
    moved = json.loads(row["moved_json"])
    return Pair(
        **{name: row[name] for name in _PLAIN},
        slow_text=slow,
        fast_text=fast,
        features=unpack(json.loads(row["features_json"])["dialect"], row["packed"], row["names"]),
        slow=_latency(row["slow_json"]),
        fast=_latency(row["fast_json"]),
        steps=tuple(json.loads(row["steps_json"])),
        receipts=tuple(json.loads(row["receipts_json"])),
        imported=bool(row["imported"]),
        example=bool(row["example"]),
        checked=bool(row["proved"]),
        moved=tuple(from_plain(CounterMove, move) for move in moved),
    )


_PLAIN = (
    "kernel", "dialect", "target", "slow_hash", "fast_hash", "origin", "summary", "host", "file", "bound", "created",
    "edit", "fast_bound", "lesson",
)  # fmt: skip


def _latency(text: str) -> Latency:
    plain = json.loads(text)
    return Latency(plain["us"], plain["low_us"], plain["high_us"], Known(plain["known"]))


def difference_words(slow: str, fast: str) -> str:
    """Return the distinct words of the lines that differ, at most ``MOST_WORDS``: first those that only one side of
    the difference has, then the others, each in order."""
    sides: dict[str, dict[str, None]] = {"-": {}, "+": {}}
    for line in difflib.unified_diff(source_lines(slow), source_lines(fast), lineterm="", n=0):
        if line[:1] in "+-" and not line.startswith(("---", "+++")):
            sides[line[0]] |= dict.fromkeys(_WORD.findall(line))
    words = sides["-"] | sides["+"]
    both = sides["-"].keys() & sides["+"].keys()
    return " ".join(sorted(words, key=both.__contains__)[:MOST_WORDS])


def _compressed(slow: str, fast: str) -> bytes:
    first, second = slow.encode(), fast.encode()
    one = zlib.compress(first, 9)
    other = zlib.compressobj(9, zdict=first[-32768:]) if first else zlib.compressobj(9)
    return len(one).to_bytes(4, "little") + one + other.compress(second) + other.flush()


def _texts(sources: bytes) -> tuple[str, str]:
    end = 4 + int.from_bytes(sources[:4], "little")
    first = zlib.decompress(sources[4:end])
    other = zlib.decompressobj(zdict=first[-32768:]) if first else zlib.decompressobj()
    return first.decode(), other.decompress(sources[end:]).decode()
