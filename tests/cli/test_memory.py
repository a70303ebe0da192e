from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from support.command import Command
from support.nki_kernels import FASTER, SILU

from accelopt_benchmarks.memory import evaluation_run
from accelopt_benchmarks.result import GoalResult
from accelopt_lsp.cli import bench
from accelopt_memory.features import kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.outcomes import Outcome
from accelopt_memory.records import Pair, Trap


@pytest.fixture
def pair(home: Path) -> Pair:
    """A pair in the memory, with a name that would clear the screen if a terminal believed it."""
    new_pair = Pair(
        "silu", "nki", "trn1", SILU, FASTER, "slow", "fast", "rule:nki-larger-tiles", "larger\x1b[2J tiles",
        kernel_features(SILU), steps=("rule:nki-larger-tiles",),
    )  # fmt: skip
    with Memory.open(home / "memory.db") as memory:
        memory.add_pair(new_pair)
        memory.add_trap(Trap("slow", "c", "trn1", "rule:x", "slower", "3 % slower"))
    return new_pair


def test_looking_makes_no_file(accelopt: Command, home: Path) -> None:
    assert accelopt("memory", "path").out == f"{home / 'memory.db'}\n"
    assert accelopt("memory", "path", "--json").object == {"path": str(home / "memory.db")}
    for command in (["stats"], ["search", "x"], ["show", "abcdef"]):
        accelopt("memory", *command)
    assert not (home / "memory.db").exists()


def test_stats_has_exactly_the_agreed_names(accelopt: Command, home: Path, pair: Pair) -> None:
    stats = accelopt("memory", "stats", "--json").object
    assert list(stats) == ["path", "pairs", "traps", "rejected", "runs", "receipts", "bytes", "checked"]
    assert (stats["path"], stats["pairs"], stats["traps"]) == (str(home / "memory.db"), 1, 1)
    assert stats["bytes"] > 0


def test_search_finds_and_says_when_it_does_not(accelopt: Command, pair: Pair) -> None:
    result = accelopt("memory", "search", "COLUMNS", "silu", "--json")
    assert result.code == 0
    assert [(hit["kind"], hit["id"]) for hit in result.object["results"]] == [("pair", pair.id)]
    nothing = accelopt("memory", "search", "absent", "--json")
    assert (nothing.code, nothing.object["results"]) == (1, [])
    assert "\x1b" not in accelopt("memory", "search", "tiles").out


def test_show_takes_the_beginning_of_an_id(accelopt: Command, pair: Pair) -> None:
    entry = accelopt("memory", "show", pair.id[:6], "--json").object
    assert (entry["kind"], entry["id"], entry["entry"]["fast_text"]) == ("pair", pair.id, FASTER)
    text = accelopt("memory", "show", pair.id).out
    assert "+COLUMNS = 512" in text
    assert "\x1b" not in text


def test_show_without_an_id_tells_what_was_learned(accelopt: Command, home: Path, pair: Pair) -> None:
    assert accelopt("memory", "show", "--json").object == {"items": []}
    with Memory.open(home / "memory.db") as memory:
        memory.outcomes.add(Outcome("rule:a", "k", "dma", "nki", "trn1", -0.5, "r"))
    (item,) = accelopt("memory", "show", "--json").object["items"]
    assert (item["item"], item["dialect"], item["tasks"], item["tries"], item["failed"]) == (
        "rule:a",
        "nki",
        1,
        1,
        0,
    )
    assert item["expected"] < 0.97
    assert "rule:a" in accelopt("memory", "show").out


def test_forget_deletes_all_or_nothing(accelopt: Command, home: Path, pair: Pair) -> None:
    wrong = accelopt("memory", "forget", pair.id, "nothing-like-it", "--json")
    assert (wrong.code, wrong.object["error"]["exit"]) == (1, 1)
    assert accelopt("memory", "stats", "--json").object["pairs"] == 1
    assert accelopt("memory", "forget", pair.id, "--json").object == {
        "forgotten": [{"kind": "pair", "id": pair.id}]
    }
    assert accelopt("memory", "stats", "--json").object["pairs"] == 0


def test_export_and_import(
    accelopt: Command, home: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert accelopt("memory", "export", "out.jsonl", "--json").object == {"path": "out.jsonl", "records": 2}
    monkeypatch.setenv("ACCELOPT_DB", str(home / "other.db"))
    added = accelopt("memory", "import", "out.jsonl", "--json").object["added"]
    assert added == {"receipt": 0, "pair": 1, "trap": 1, "rejection": 0}
    (home / "bad.jsonl").write_text('{"format": "accelopt-memory", "version": 1}\n{"kind": "pair"}\n')
    bad = accelopt("memory", "import", "bad.jsonl", "--json")
    assert bad.code == 2
    assert "line 2" in bad.object["error"]["message"]
    unwritable = accelopt("memory", "export", "absent/out.jsonl")
    assert unwritable.code == 2
    assert "cannot be written" in unwritable.err


def test_eval_is_a_measurement_of_a_checkout(accelopt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    async def measured(kernels: tuple[str, ...], seeds: int, cache: Path | None) -> list[GoalResult]:
        return [GoalResult(f"{kernels} {seeds}", "<= 1", 2.0, "x", False)]

    monkeypatch.setattr(evaluation_run, "measure_evaluation", measured)
    ended = accelopt("memory", "eval", "silu", "--json")
    assert (ended.code, ended.object["met"], ended.object["rows"][0]["what"]) == (1, False, "('silu',) 10")
    monkeypatch.setattr(bench, "OWN_PACKAGE", "a_package_that_is_not_there")
    without = accelopt("memory", "eval")
    assert (without.code, without.err.count("\n")) == (2, 1)
    assert "`accelopt memory eval`" in without.err


@pytest.mark.parametrize("command", [["stats"], ["search", "x"], ["forget", "abcdef"], ["export", "x.jsonl"]])
def test_a_corrupt_database_is_exit_code_3_and_left_alone(
    accelopt: Command, home: Path, command: list[str]
) -> None:
    (home / "memory.db").write_bytes(b"rubbish" * 1000)
    ended = accelopt("memory", *command, "--json")
    assert ended.code == 3
    assert "accelopt memory set-aside" in ended.object["error"]["message"]
    assert (home / "memory.db").read_bytes() == b"rubbish" * 1000


def test_set_aside_moves_a_corrupt_database_when_asked(accelopt: Command, home: Path) -> None:
    assert accelopt("memory", "set-aside", "--json").code == 1
    (home / "memory.db").write_bytes(b"rubbish" * 1000)
    moved = accelopt("memory", "set-aside", "--json").object["moved_to"]
    assert Path(moved).read_bytes() == b"rubbish" * 1000
    assert accelopt("memory", "stats", "--json").object["pairs"] == 0


@pytest.mark.slow
def test_a_locked_database_can_be_read(accelopt: Command, home: Path, pair: Pair) -> None:
    other = sqlite3.connect(home / "memory.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert accelopt("memory", "stats", "--json").object["pairs"] == 1
    locked = accelopt("memory", "forget", pair.id, "--json")
    assert locked.code == 3
    assert "locked" in locked.object["error"]["message"]
    other.close()


def test_the_settings_can_name_the_memory(
    accelopt: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "user.toml").write_text(f"[memory]\npath = {json.dumps(str(home / 'mine.db'))}")
    assert accelopt("memory", "path").out == f"{home / 'memory.db'}\n", "ACCELOPT_DB wins"
    monkeypatch.delenv("ACCELOPT_DB")
    assert accelopt("memory", "path").out == f"{home / 'mine.db'}\n"
