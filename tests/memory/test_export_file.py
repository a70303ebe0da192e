from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accelopt_memory import export_file
from accelopt_memory.export_file import MemoryImportError, export_memory, import_file
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair, Rejection, Trap
from accelopt_profiling.plain import to_plain
from accelopt_profiling.receipt import Receipt


@pytest.fixture
def full(memory: Memory, make_pair: Callable[..., Pair]) -> Memory:
    receipt = Receipt("gate", {"seed": 1})
    memory.add_receipt(receipt)
    memory.add_pair(make_pair(receipts=(receipt.id,)))
    memory.add_trap(Trap("h", "c", "trn1", "rule:x", "slower", "3 % slower"))
    memory.add_rejection(Rejection("h", "d", "rule:y", "unreadable"))
    return memory


@pytest.fixture
def exported(full: Memory, tmp_path: Path) -> Path:
    assert export_memory(full, tmp_path / "out.jsonl") == 4
    return tmp_path / "out.jsonl"


def test_what_goes_out_comes_in(full: Memory, exported: Path, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "other.db") as other:
        assert import_file(other, exported) == {"receipt": 1, "pair": 1, "trap": 1, "rejection": 1}
        assert import_file(other, exported) == {"receipt": 0, "pair": 0, "trap": 0, "rejection": 0}
        assert other.pairs() == [dataclasses.replace(p, imported=True) for p in full.pairs()]
        assert other.rejected("h")[0].imported
        export_memory(other, tmp_path / "again.jsonl")
    ids = [[json.loads(line).get("id") for line in p.open()] for p in (exported, tmp_path / "again.jsonl")]
    assert ids[0] == ids[1]


def test_without_sources_no_line_of_a_kernel_goes_out_and_a_pair_is_still_found(
    full: Memory, tmp_path: Path, make_pair: Callable[..., Pair]
) -> None:
    full.add_pair(make_pair(1))
    assert export_memory(full, tmp_path / "out.jsonl", sources=False) == 4
    text = (tmp_path / "out.jsonl").read_text()
    assert not any(line.strip() in text for line in make_pair().slow_text.splitlines() if len(line) > 8)
    with Memory.open(tmp_path / "other.db") as other:
        assert import_file(other, tmp_path / "out.jsonl") == {
            "receipt": 0,
            "pair": 2,
            "trap": 1,
            "rejection": 1,
        }
        matches = other.similar(make_pair().features)
        assert [(m.score, m.pair.example, m.pair.summary) for m in matches] == [
            (1.0, True, make_pair().summary)
        ] * 2


def _changed(line: dict[str, Any], **data: Any) -> str:
    return json.dumps({**line, "data": {**line["data"], **data}})


def _features(line: dict[str, Any], **data: Any) -> str:
    return _changed(line, features={**line["data"]["features"], **data})


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (lambda lines: [], "empty"),
        (lambda lines: ["{}"], "no export"),
        (lambda lines: ['{"format": "accelopt-memory", "version": 99}'], "version 99"),
        (lambda lines: [*lines, "not json"], "not JSON"),
        (lambda lines: [*lines, "[1]"], "not a JSON object"),
        (lambda lines: [*lines, '{"kind": "suggestion", "id": "x", "data": {}}'], "unknown kind"),
        (lambda lines: [*lines, '{"kind": "pair", "id": "x", "data": {"kernel": 3}}'], "not a pair"),
        (lambda lines: [*lines, '{"kind": "pair", "id": "x"}'], "not a pair"),
        (lambda lines: [*lines, "[" * 100_000], "not JSON"),
        (
            lambda lines: [lines[0], _changed(json.loads(lines[2]), fast_text="other")],
            "not that of its content",
        ),
        (lambda lines: [lines[0], _changed(json.loads(lines[2]), steps="rm -rf")], "not a pair"),
        (lambda lines: [lines[0], _changed(json.loads(lines[2]), dialect="cuda")], "not a pair"),
        (lambda lines: [lines[0], _features(json.loads(lines[2]), calls={"tl.load": -1})], "counted less"),
        (lambda lines: [lines[0], _features(json.loads(lines[2]), shingles=["-0000001"])], "no hexadecimal"),
    ],
)
def test_a_wrong_file_is_refused_whole(
    exported: Path, tmp_path: Path, break_it: Callable[[list[str]], list[str]], why: str
) -> None:
    lines = break_it(exported.read_text().splitlines())
    bad = tmp_path / "bad.jsonl"
    bad.write_text("\n".join(lines))
    with Memory.open(tmp_path / "other.db") as other:
        with pytest.raises(MemoryImportError, match=why) as caught:
            import_file(other, bad)
        assert f"line {max(len(lines), 1)}" in str(caught.value)
        assert (other.stats().pairs, other.stats().traps, other.stats().receipts) == (0, 0, 0)


@pytest.mark.parametrize("mode", ["local", "project"])
def test_a_pair_that_looks_like_a_secret_is_refused_with_the_reason(
    mode: str, make_pair: Callable[..., Pair], tmp_path: Path
) -> None:
    """In a project's memory it has no file, so it would be gone at the next refresh."""
    pair = make_pair()
    pair = dataclasses.replace(pair, fast_text=f'{pair.fast_text}\nAPI_KEY = "abcdef0123456789"\n')
    lines = [
        {"format": "accelopt-memory", "version": 1},
        {"kind": "pair", "id": pair.id, "data": to_plain(pair)},
    ]
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("".join(json.dumps(line) + "\n" for line in lines))
    project = tmp_path if mode == "project" else None
    with Memory.open(tmp_path / "m.db", project=project) as memory:
        with pytest.raises(
            MemoryImportError, match="line 2: a source of the pair looks as if it held a secret"
        ):
            import_file(memory, wrong)
        memory.refresh()
        assert memory.pairs() == []


def test_sizes_are_bounded(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(tmp_path / "other.db") as other:
        for name, bound in (("LINE_BYTES", 200), ("LINES", 2), ("FILE_BYTES", 100)):
            with monkeypatch.context() as patch:
                patch.setattr(export_file, name, bound)
                with pytest.raises(MemoryImportError, match="MiB"):
                    import_file(other, exported)
        assert other.stats().pairs == 0


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["kernel", "features", "slow", "us", "steps", "kind", "body"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    ),
    kind=st.sampled_from(["pair", "trap", "rejection", "receipt"]),
)
def test_no_line_can_break_the_reader(memory: Memory, tmp_path: Path, data: Any, kind: str) -> None:
    path = tmp_path / "any.jsonl"
    line = json.dumps({"kind": kind, "id": "0" * 16, "data": data})
    path.write_text('{"format": "accelopt-memory", "version": 1}\n' + line)
    with pytest.raises(MemoryImportError):
        import_file(memory, path)


def test_a_failed_export_leaves_the_old_file(full: Memory, tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(OSError):
        export_memory(full, target)
    assert list(tmp_path.glob(".folder*")) == [], "no temporary file stays"


def test_search_takes_words_not_a_query_language(full: Memory) -> None:
    assert [f.kind for f in full.search("affine_range silu")] == ["pair"]
    assert [f.kind for f in full.search("slower")] == ["trap"]
    assert [f.kind for f in full.search("UNREADABLE")] == ["rejection"]
    assert full.search("silu absent") == []
    for text in ('"', "a OR", "NEAR(", "*", "kernel:silu", "", "  ", "'; DROP TABLE pairs"):
        full.search(text)
    assert full.stats().pairs == 1


def test_forgetting_takes_the_evidence_that_nothing_else_has(
    full: Memory, make_pair: Callable[..., Pair]
) -> None:
    shared = Receipt("gate", {"seed": 2})
    full.add_receipt(shared)
    first = full.add_pair(make_pair(5, receipts=(shared.id,)))
    second = full.add_pair(make_pair(6, receipts=(shared.id,)))
    assert full.forget(first) == "pair"
    assert full.receipt(shared.id) is not None
    assert full.forget(second) == "pair"
    assert full.receipt(shared.id) is None
    assert full.forget(second) is None
    assert full.search("larger")[0].id not in (first, second)
    assert full.entries(first) == []


def test_forgetting_a_run_takes_its_events_and_suggestions(memory: Memory) -> None:
    run = memory.run_log.start("/k.py", "k", "h", "trn1")
    memory.run_log.add_event(run, "tried", {})
    memory.save_suggestion({"id": "s1", "file": "/k.py", "base_hash": "h", "run": run})
    assert memory.forget(run) == "run"
    assert memory.run_log.events(run) == []
    assert memory.suggestion("s1") is None


def test_entries_are_found_by_the_beginning_of_their_id(full: Memory) -> None:
    pair = full.pairs()[0].id
    assert full.entries(pair[:6]) == [("pair", pair)]
    assert full.entries(pair[:3]) == []
    assert full.entries("%%%%") == []
    assert full.entry("pair", pair) == full.pairs()[0]
    assert full.entry("pair", "0" * 16) is None


def test_every_kind_of_entry_can_be_looked_at(full: Memory) -> None:
    run = full.run_log.start("/k.py", "k", "h", "trn1")
    full.save_suggestion({"id": "suggestion1", "file": "/k.py", "base_hash": "h", "run": run})
    receipt = full.pairs()[0].receipts[0]
    ids = {"pair": full.pairs()[0].id, "trap": full.traps()[0].id, "rejection": full.rejected()[0].id,
           "run": run, "suggestion": "suggestion1", "receipt": receipt}  # fmt: skip
    for kind, entry_id in ids.items():
        assert full.entries(entry_id) == [(kind, entry_id)]
        entry = full.entry(kind, entry_id)  # type: ignore[arg-type]
        assert entry is not None
        assert entry.id == entry_id
