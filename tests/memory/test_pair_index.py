"""Among many pairs the sketches lead to those that a comparison of all finds, and follow additions and deletions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from accelopt_memory import memory as memory_module
from accelopt_memory.features import KernelFeatures
from accelopt_memory.memory import Memory
from accelopt_memory.pair_index import WORDS, sketch
from accelopt_memory.records import Pair
from accelopt_memory.similarity import similarity

CALLS = [
    f"nl.{name}"
    for name in ["load", "store", "add", "multiply", "exp", "sqrt", "sum", "max", "divide", "copy"]
]


def drawn(draw: random.Random) -> KernelFeatures:
    calls = {name: draw.randrange(1, 5) for name in draw.sample(CALLS, draw.randrange(2, 7))}
    shingles = sorted(f"{draw.randrange(400):010x}" for _ in range(draw.randrange(20, 60)))
    return KernelFeatures(
        "nki", calls, tuple(dict.fromkeys(shingles)), ("1:nl.affine_range",), ("float32",), "dma"
    )


def test_the_shortlist_holds_what_a_comparison_of_all_finds(
    memory: Memory, make_pair: Callable[..., Pair]
) -> None:
    draw = random.Random(5)
    pairs = [make_pair(k, features=drawn(draw)) for k in range(400)]
    with memory.transaction():
        for pair in pairs:
            memory.add_pair(pair)
    assert len(pairs) > memory_module.SCANNED
    found = asked = 0
    for _ in range(10):
        query = drawn(draw)
        exact = sorted(pairs, key=lambda p: (-similarity(query, p.features), p.id))[:8]
        matches = memory.similar(query, 8, 0.0)
        assert [m.score for m in matches] == sorted((m.score for m in matches), reverse=True)
        assert all(m.score == similarity(query, m.pair.features) for m in matches)
        found += len({m.pair.id for m in matches} & {p.id for p in exact})
        asked += 8
    assert found >= 0.8 * asked


def test_the_index_follows_additions_and_deletions_of_others_too(
    memory: Memory, path: Path, make_pair: Callable[..., Pair]
) -> None:
    draw = random.Random(6)
    with memory.transaction():
        for number in range(300):
            memory.add_pair(make_pair(number, features=drawn(draw)))
    query = KernelFeatures("nki", {"nl.tan": 3}, ("ffffffffff",))
    assert memory.similar(query, 1, 0.5) == []
    with Memory.open(path) as other:
        pair = make_pair(1000, features=query)
        other.add_pair(pair)
        assert [m.pair.id for m in memory.similar(query, 1, 0.5)] == [pair.id]
        other.forget(pair.id)
        assert memory.similar(query, 1, 0.5) == []
    with memory.connection.writing() as db:  # as an older version leaves it
        memory.add_pair(pair)
        db.execute("UPDATE pairs SET sketch = NULL")
    with Memory.open(path) as other:
        assert [m.pair.id for m in other.similar(query, 1, 0.5)] == [pair.id]


def test_a_sketch_has_its_size_whatever_the_kernel() -> None:
    assert len(sketch(KernelFeatures("triton"))) == 8 * WORDS
    many = replace(drawn(random.Random(1)), calls={f"f{k}": 30 for k in range(200)})
    assert len(sketch(many)) == 8 * WORDS
