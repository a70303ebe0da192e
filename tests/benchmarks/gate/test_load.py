"""Verdicts of two runs beside one another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from accelopt_benchmarks.gate.detection import CorpusVerdict, busy_processes, compared, read_verdicts


def test_verdicts_that_differ_from_an_earlier_run_are_named(tmp_path: Path) -> None:
    before = [CorpusVerdict("a", "attack", False, True), CorpusVerdict("b", "honest", True, True)]
    file = tmp_path / "before.json"
    file.write_text(
        json.dumps(
            {"cases": [{"case": j.case, "version": j.version, "accepted": j.accepted} for j in before]}
        )
    )
    assert compared(before, read_verdicts(file), 8).met
    other = compared([before[0], CorpusVerdict("b", "honest", False, False)], read_verdicts(file), 8)
    assert not other.met
    assert other.value == 1
    assert "b/honest" in other.detail
    assert not compared([], read_verdicts(file), 8).met


def test_what_holds_no_verdicts_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ValueError, match=r"other\.json holds no verdicts"):
        read_verdicts(tmp_path / "other.json")


def test_busy_processes_end_with_the_body() -> None:
    with busy_processes(2) as running:
        assert [process.poll() for process in running] == [None, None]
    assert all(process.returncode for process in running)
