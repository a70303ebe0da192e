"""Text that is no UTF-8 (a file name from an old disk, half a character from an editor) is kept like any other."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accelopt_memory.export_file import MemoryImportError, export_memory, import_file
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair, Rejection, Trap
from accelopt_profiling.receipt import Receipt

HALF = "half \ud800 of a character"
NAME = "/home/caf\udce9/kernel.py"


def test_every_record_takes_any_text(memory: Memory, make_pair: Callable[..., Pair], tmp_path: Path) -> None:
    pair = make_pair(slow_text=HALF, file=NAME, steps=(HALF,))
    pair_id = memory.add_pair(pair)
    record = memory.pair(pair_id)
    assert record is not None
    assert memory.add_pair(pair) == pair_id, "and saving it again changes nothing"
    assert (record.id, record.steps) == (pair_id, (HALF,))
    memory.add_trap(Trap("h", "c", "trn1", HALF, "slower", HALF))
    memory.add_rejection(Rejection("h", "c", HALF, HALF))
    run = memory.run_log.start(NAME, HALF, "h", "trn1", options={"note": HALF})
    memory.run_log.add_event(run, "call", {"said": HALF}, HALF)
    memory.run_log.finish(run, "failed", {"why": HALF})
    memory.save_suggestion({"id": "s", "file": NAME, "base_hash": "h", "summary": HALF})
    assert [s.body["summary"] for s in memory.suggestions(NAME)] == [HALF]
    assert memory.receipt(memory.add_receipt(Receipt("gate", {"said": HALF}))) is not None
    memory.profile_cache.put("key", {"said": HALF})
    assert memory.profile_cache.get("key") == {"said": HALF}
    assert memory.run_log.events(run)[0].data == {"said": HALF}
    export_memory(memory, tmp_path / "out.jsonl")
    with Memory.open(tmp_path / "other.db") as other:
        assert import_file(other, tmp_path / "out.jsonl") == {
            "receipt": 1,
            "pair": 1,
            "trap": 1,
            "rejection": 1,
        }


@pytest.mark.parametrize("text", [HALF, "a\0b", '"', "^ * ( NEAR", "x\U0001e922y", ""])
def test_anything_can_be_looked_for(memory: Memory, text: str) -> None:
    assert memory.search(text) == []
    assert memory.entries(text) == []


@pytest.mark.parametrize("text", ["larger-tiles", "X_PTR,", "cafe\u0301", "(tiles) *larger*"])
def test_words_are_found_however_they_are_joined(memory: Memory, text: str) -> None:
    memory.add_trap(Trap("h", "c", "trn1", "rule:larger_tiles", "slower", "x_ptr in café"))
    assert [hit.kind for hit in memory.search(text)] == ["trap"]


@given(st.text(alphabet=st.characters(), max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_any_text_comes_back_under_its_id(memory: Memory, text: str) -> None:
    trap_id = memory.add_trap(Trap(text, "c", "trn1", text, "slower", text))
    assert trap_id in {trap.id for trap in memory.traps(text)}


@pytest.mark.parametrize("depth", [100, 300, 480, 900, 100_000])
def test_a_record_of_any_depth_is_taken_or_refused(memory: Memory, tmp_path: Path, depth: int) -> None:
    body: dict[str, object] = {}
    for _ in range(depth):
        body = {"a": body}
    try:
        receipt_id = Receipt("gate", body).id
    except RecursionError:
        receipt_id = "0" * 16
    line = '{"kind": "receipt", "id": "%s", "data": {"kind": "gate", "body": %s}}'
    header = json.dumps({"format": "accelopt-memory", "version": 1})
    nested = '{"a":' * depth + "{}" + "}" * depth
    path = tmp_path / "deep.jsonl"
    path.write_text(f"{header}\n{line % (receipt_id, nested)}\n")
    refused = contextlib.nullcontext() if depth == 100 else contextlib.suppress(MemoryImportError)
    with refused:
        assert import_file(memory, path)["receipt"] == 1


def test_what_was_found_here_takes_the_place_of_what_was_imported(
    memory: Memory, make_pair: Callable[..., Pair]
) -> None:
    pair, trap = make_pair(origin="rule:here"), Trap("h", "c", "trn1", "rule:here", "slower")
    rejection = Rejection("h", "c", "rule:here")
    for record in (pair, trap, rejection):
        add = {Pair: memory.add_pair, Trap: memory.add_trap, Rejection: memory.add_rejection}[type(record)]
        theirs = dataclasses.replace(record, origin="rule:there", imported=True)
        add(theirs)
        add(record)
        add(theirs)
    records = [*memory.pairs(), *memory.traps(), *memory.rejected()]
    assert [(record.origin, record.imported) for record in records] == [("rule:here", False)] * 3
    assert [hit.kind for hit in memory.search("here")] == ["pair", "trap", "rejection"]
