"""Rows of pairs: sources compressed, features packed, and for the text search the words of the difference.

A row holds both texts in ``sources``, the fast one compressed with the slow one as dictionary. The columns of an older
version stay: ``slow_text`` is empty, ``fast_text`` holds the words of the difference, by which the text index finds the
pair, and ``features_json`` the dialect alone. A row of an older version has no ``sources`` and is read as it is.
"""

from __future__ import annotations

import difflib
import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

from accelopt_memory.feature_pack import pack, unpack
from accelopt_memory.pair_index import sketch
from accelopt_memory.records import Pair
from accelopt_memory.rows import from_row, storable_record, to_json
from accelopt_profiling.measurement import Latency
from accelopt_profiling.plain import from_plain
from accelopt_profiling.quantity import CounterMove, Known
from accelopt_profiling.source_text import source_lines

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
