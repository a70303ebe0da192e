from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelopt_memory.features import KernelFeatures
from accelopt_memory.memory import Memory
from accelopt_memory.pair_index import pair_columns, pair_of_row
from accelopt_memory.records import Pair, content_id
from accelopt_memory.rows import from_row, to_row
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known


def test_accepting_twice_keeps_one_row(memory: Memory, make_pair: Callable[..., Pair]) -> None:
    first = memory.add_pair(make_pair())
    assert memory.add_pair(dataclasses.replace(make_pair(), summary="said differently")) == first
    assert [p.id for p in memory.pairs()] == [first]
    assert memory.stats().pairs == 1


def test_a_pair_comes_back_as_it_was(memory: Memory, make_pair: Callable[..., Pair], path: Path) -> None:
    pair = make_pair(receipts=("a" * 16,), bound="DMA", file="/k/silu.py")
    memory.add_pair(pair)
    with Memory.open(path) as again:
        back = again.pair(pair.id)
    assert back is not None
    assert back.created
    assert dataclasses.replace(back, created="") == pair
    assert back.speedup == 2.0


def test_an_unknown_time_gives_no_speedup(make_pair: Callable[..., Pair]) -> None:
    assert make_pair(fast=Latency()).speedup is None


def test_similar_pairs_come_best_first_and_only_of_the_dialect(
    memory: Memory, make_pair: Callable[..., Pair]
) -> None:
    same = make_pair()
    other = make_pair(
        1, features=KernelFeatures("nki", {"nl.load": 1, "nl.exp": 3}, ("aa",), ("1:nl.affine_range",))
    )
    foreign = make_pair(2, dialect="triton", features=dataclasses.replace(same.features, dialect="triton"))
    for pair in (other, foreign, same):
        memory.add_pair(pair)
    matches = memory.similar(same.features, limit=5, least=0.05)
    assert [m.pair.id for m in matches] == [same.id, other.id]
    assert matches[0].score == pytest.approx(1.0)
    assert 0 < matches[1].score < 1
    assert [m.pair.id for m in memory.similar(same.features, limit=1)] == [same.id]


def test_pairs_of_one_score_come_in_the_order_of_their_ids(
    memory: Memory, make_pair: Callable[..., Pair]
) -> None:
    ids = [memory.add_pair(make_pair(number)) for number in range(5)]
    assert [m.pair.id for m in memory.similar(make_pair().features)] == sorted(ids)


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_ids_collide_only_for_the_same_parts(a: list[str], b: list[str]) -> None:
    assert (content_id(*a) == content_id(*b)) == (a == b)


latencies = st.floats(0.1, 1e9).map(lambda us: Latency(us, us / 2, us * 2, Known.ESTIMATED)) | st.just(
    Latency()
)


@pytest.mark.slow
@given(
    st.builds(
        Pair,
        kernel=st.text(max_size=9),
        dialect=st.sampled_from(["nki", "triton"]),
        target=st.text(max_size=9),
        slow_text=st.text(max_size=99),
        fast_text=st.text(max_size=99),
        slow_hash=st.text(max_size=9),
        fast_hash=st.text(max_size=9),
        origin=st.text(max_size=9),
        summary=st.text(max_size=9),
        features=st.builds(
            KernelFeatures,
            dialect=st.sampled_from(["nki", "triton"]),
            calls=st.dictionaries(st.text(max_size=5), st.integers(0, 9)),
            bound=st.none() | st.text(max_size=5),
        ),
        slow=latencies,
        fast=latencies,
        steps=st.lists(st.text(max_size=5)).map(tuple),
        bound=st.none() | st.text(max_size=5),
        imported=st.booleans(),
    )
)
def test_any_pair_survives_its_row(pair: Pair) -> None:
    assert from_row(Pair, to_row(pair, id=pair.id, number=7)) == pair, "as an older version wrote it"
    assert pair_of_row(to_row(pair, id=pair.id, number=7) | pair_columns(pair)) == pair


def test_what_an_older_version_only_proved_was_accepted_by_nobody(
    memory: Memory, make_pair: Callable[..., Pair]
) -> None:
    """It writes the same column into the same file, whichever version made that."""
    memory.add_pair(make_pair())
    with memory.connection.writing() as db:
        db.execute("UPDATE pairs SET proved = 1")
    assert ([p.checked for p in memory.pairs(checked=True)], memory.pairs()) == ([True], [])
