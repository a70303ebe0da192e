from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from accelopt_memory import profile_cache
from accelopt_memory.connection import Connection
from accelopt_memory.memory import Memory
from accelopt_memory.records import Rejection, Trap
from accelopt_profiling.measurement import Latency
from accelopt_profiling.receipt import Receipt


def test_a_run_is_written_as_it_happens(memory: Memory, path: Path) -> None:
    run = memory.run_log.start("/k.py", "k", "hash", "h100", options={"budget": 3})
    assert memory.run_log.add_event(run, "tried", {"id": "a", "cost": Latency()}, key="a") == 1
    assert memory.run_log.add_event(run, "tried", {"id": "b"}, key="b") == 2
    assert memory.run_log.add_event(run, "note", {}) == 3
    with Memory.open(path, read_only=True) as other:
        assert [r.id for r in other.run_log.runs(status="running")] == [run]
        assert [e.kind for e in other.run_log.events(run, after=1)] == ["tried", "note"]
    memory.run_log.finish(run, "cancelled", {"best": 1.5})
    finished = memory.run_log.run(run)
    assert finished is not None
    assert (finished.status, finished.result, finished.options) == ("cancelled", {"best": 1.5}, {"budget": 3})
    assert finished.started <= finished.finished


def test_what_was_paid_for_is_recorded_once(memory: Memory) -> None:
    run = memory.run_log.start("/k.py", "k", "hash", "h100")
    assert memory.run_log.add_event(run, "call", {"answer": 1}, key="prompt") == 1
    assert memory.run_log.add_event(run, "call", {"answer": 2}, key="prompt") == 1
    assert [e.data for e in memory.run_log.events(run)] == [{"answer": 1}]
    other = memory.run_log.start("/k.py", "k", "hash", "h100")
    assert memory.run_log.add_event(other, "call", {"answer": 3}, key="prompt") == 1, "keys belong to one run"


def test_runs_come_newest_first_and_by_kernel(memory: Memory) -> None:
    first, second = (memory.run_log.start("/k.py", "k", h, "h100") for h in ("one", "two"))
    assert [r.id for r in memory.run_log.runs()] == [second, first]
    assert [r.id for r in memory.run_log.runs(kernel_hash="one")] == [first]


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.run_log.add_event("gone", "x", {}),
        lambda memory: memory.run_log.finish("gone"),
        lambda memory: memory.set_suggestion_state("gone", "accepted"),
    ],
)
def test_an_unknown_run_or_suggestion_is_an_error(memory: Memory, call: Callable[[Memory], object]) -> None:
    with pytest.raises(KeyError, match=r"no (run|suggestion) gone"):
        call(memory)


def test_suggestions_keep_their_state_when_saved_again(memory: Memory) -> None:
    body = {"id": "s1", "file": "/k.py", "base_hash": "h", "run": "r", "summary": "old"}
    memory.save_suggestion(body)
    memory.set_suggestion_state("s1", "accepted")
    memory.save_suggestion({**body, "summary": "new"})
    stored = memory.suggestion("s1")
    assert stored is not None
    assert (stored.state, stored.body["summary"]) == ("accepted", "new")
    assert memory.suggestions("/k.py", "h") == [stored]
    assert memory.suggestions("/k.py", state="offered") == []
    assert memory.suggestions("/other.py") == []
    assert memory.suggestion("s2") is None
    with pytest.raises(ValueError, match="base_hash"):
        memory.save_suggestion({"id": "s2", "file": "/k.py"})


def test_traps_and_rejections_are_asked_by_kernel(memory: Memory) -> None:
    trap = Trap("h", "cand", "trn1", "rule:x", "slower", "3 % slower", steps=("rule:x",))
    assert memory.add_trap(trap) == memory.add_trap(trap) == trap.id
    memory.add_trap(Trap("other", "cand", "trn1", "rule:x", "slower"))
    assert [t.id for t in memory.traps("h")] == [trap.id]
    assert len(memory.traps()) == 2
    rejection = Rejection("h", "cand", "rule:x", "too clever")
    memory.add_rejection(rejection)
    memory.add_rejection(rejection)
    assert [r.reason for r in memory.rejected("h")] == ["too clever"]
    assert memory.rejected("other") == []
    assert (memory.stats().traps, memory.stats().rejected) == (2, 1)


def test_a_receipt_is_kept_under_its_own_id(memory: Memory) -> None:
    receipt = Receipt("gate", {"seeds": [1, 2], "versions": {"torch": "2.13"}})
    assert memory.add_receipt(receipt) == memory.add_receipt(receipt) == receipt.id
    back = memory.receipt(receipt.id)
    assert back is not None
    assert back.id == receipt.id
    assert memory.receipt("0" * 16) is None


def test_the_cache_gives_back_plain_values(memory: Memory) -> None:
    assert memory.profile_cache.put("key", {"latency": Latency()})
    assert memory.profile_cache.get("key") == {
        "latency": {"us": None, "low_us": None, "high_us": None, "known": "not measured"}
    }
    assert memory.profile_cache.get("other") is None
    assert not memory.profile_cache.put("big", "x" * (profile_cache.ENTRY_BYTES + 1))
    assert memory.profile_cache.get("big") is None


def test_the_cache_drops_what_was_not_used_for_longest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(profile_cache.time, "time", lambda: clock[0])
    connection = Connection(path)
    cache = profile_cache.ProfileCache(connection, total_bytes=250)
    for name in ("a", "b", "c"):
        clock[0] += 2 * profile_cache.TOUCH_SECONDS
        cache.put(name, "x" * 100)
    assert cache.get("a") is None
    clock[0] += 2 * profile_cache.TOUCH_SECONDS
    assert cache.get("b") is not None  # a use: "c" is the oldest now
    clock[0] += 2 * profile_cache.TOUCH_SECONDS
    cache.put("d", "x" * 100)
    names = [name for name in "bcd" if cache.get(name) is not None]
    assert names == ["b", "d"]
    clock[0] += profile_cache.AGE_SECONDS + 1
    assert cache.get("d") is None
    connection.close()
