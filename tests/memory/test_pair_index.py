"""The index finds the most similar of all pairs, and follows additions and deletions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accelopt_benchmarks.memory.similarity import similarity
from accelopt_memory import features, pair_index
from accelopt_memory.features import KernelFeatures, fixed_row, pack, similarities, unpack
from accelopt_memory.location import NOWHERE
from accelopt_memory.memory import Memory
from accelopt_memory.pair_index import WORDS, sketch
from accelopt_memory.records import Pair
from accelopt_memory.rows import to_json

CALLS = [
    f"nl.{name}"
    for name in ["load", "store", "add", "multiply", "exp", "sqrt", "sum", "max", "divide", "copy"]
]


def drawn(draw: random.Random) -> KernelFeatures:
    calls = {name: draw.randrange(1, 5) for name in draw.sample(CALLS, draw.randrange(2, 7))}
    shingles = sorted(f"{draw.randrange(400):08x}" for _ in range(draw.randrange(20, 60)))
    return KernelFeatures(
        "nki", calls, tuple(dict.fromkeys(shingles)), ("1:nl.affine_range",), ("float32",), "dma"
    )


def test_the_index_finds_what_a_comparison_of_all_finds(
    memory: Memory, make_pair: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_index, "BLOCK", 150)
    draw = random.Random(5)
    pairs = [make_pair(k, features=drawn(draw)) for k in range(400)]
    with memory.transaction():
        for pair in pairs:
            memory.add_pair(pair)
    for _ in range(10):
        query = drawn(draw)
        exact = sorted((similarity(query, p.features) for p in pairs), reverse=True)[:8]
        matches = memory.similar(query, 8, 0.0)
        assert [m.score for m in matches] == pytest.approx(exact)
        assert [m.score for m in matches] == pytest.approx(
            [similarity(query, m.pair.features) for m in matches]
        )


def test_the_index_follows_additions_and_deletions_of_others_too(
    memory: Memory, path: Path, make_pair: Callable[..., Pair]
) -> None:
    draw = random.Random(6)
    with memory.transaction():
        for number in range(300):
            memory.add_pair(make_pair(number, features=drawn(draw)))
    query = KernelFeatures("nki", {"nl.tan": 3}, ("ffffffff",))
    assert memory.similar(query, 1, 0.5) == []
    with Memory.open(path) as other:
        pair = make_pair(1000, features=query)
        other.add_pair(pair)
        assert [m.pair.id for m in memory.similar(query, 1, 0.5)] == [pair.id]
        other.forget(pair.id)
        assert memory.similar(query, 1, 0.5) == []
    with memory.connection.writing() as db:  # as an older version leaves it
        memory.add_pair(pair)
        old = {"sketch": None, "sources": None, "packed": None, "features_json": to_json(query)}
        old |= {"slow_text": pair.slow_text, "fast_text": pair.fast_text}
        sets = ", ".join(f"{name} = ?" for name in old)
        db.execute(f"UPDATE pairs SET {sets} WHERE id = ?", [*old.values(), pair.id])
    with Memory.open(path) as other:
        assert [m.pair.id for m in other.similar(query, 1, 0.5)] == [pair.id]


def test_a_sketch_has_its_size_whatever_the_kernel() -> None:
    assert len(sketch(KernelFeatures("triton"))) == 8 * WORDS
    many = replace(drawn(random.Random(1)), calls={f"f{k}": 30 for k in range(200)})
    assert len(sketch(many)) == 8 * WORDS


def test_packed_features_are_as_similar_as_the_features_themselves() -> None:
    draw = random.Random(7)
    kernels = [drawn(draw) for _ in range(40)]
    kernels += [replace(kernels[0], bound=None), replace(kernels[1], calls={}), KernelFeatures("nki")]
    rows = [fixed_row(pack(k)[0]) for k in kernels]
    for one in kernels:
        assert similarities(one, rows) == pytest.approx([similarity(one, other) for other in kernels])
        assert unpack("nki", *pack(one)) == one


def test_a_row_of_a_version_that_kept_more_shingles_is_compared_by_as_many_as_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shingles = tuple(f"{7 * k:08x}" for k in range(64))
    now = KernelFeatures("triton", {"tl.load": 2}, shingles)
    monkeypatch.setattr(features, "SHINGLES_KEPT", 64)
    packed, names = pack(KernelFeatures("triton", {"tl.load": 2}, shingles))
    monkeypatch.undo()
    assert len(packed) > len(pack(now)[0])
    assert fixed_row(packed) == fixed_row(pack(now)[0])
    assert unpack("triton", packed, names) == now


@given(steps=st.lists(st.tuples(st.sampled_from(["add", "withdraw"]), st.integers(0, 5)), max_size=30))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_index_knows_the_pairs_that_are_there_whatever_numbers_they_have(
    steps: list[tuple[str, int]], make_pair: Callable[..., Pair]
) -> None:
    kernels = [KernelFeatures("nki", {CALLS[k]: 3, f"own.{k}": 2}, (f"{k:08x}",)) for k in range(len(CALLS))]
    pairs = [make_pair(k, features=kernels[k], checked=True) for k in range(6)]
    there: set[int] = set()
    with Memory.open(NOWHERE) as memory:
        for step, k in steps:
            memory.add_pair(pairs[k]) if step == "add" else memory.withdraw_unaccepted(pairs[k].id)
            (there.add if step == "add" else there.discard)(k)
            for n, features_of in enumerate(kernels[:6]):
                ids = [m.pair.id for m in memory.similar(features_of, 8, 0.9)]
                assert ids == ([pairs[n].id] if n in there else []), (step, k)
