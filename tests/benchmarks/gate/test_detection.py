"""``accelopt bench gate``: its table, its corpus, and the command on one case."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command

from accelopt_benchmarks.checkout import GATE_CORPUS
from accelopt_benchmarks.gate.corpus import read_corpus
from accelopt_benchmarks.gate.detection import CorpusVerdict, rows


@pytest.mark.slow
@pytest.mark.parametrize("case", ["nki/decoy"])
def test_the_command_checks_the_cases_that_are_named(accelopt: Command, home: Path, case: str) -> None:
    ended = accelopt("bench", "gate", "--only", case, "--json")
    report = ended.object
    assert [c["accepted"] for c in report["cases"]] == [False, True], report["cases"]
    assert all(c["right"] for c in report["cases"])
    assert ended.code == 0


def test_the_table_names_what_is_wrong() -> None:
    judged = [
        CorpusVerdict("a", "attack", False, True, ["patches"]),
        CorpusVerdict("b", "attack", True, False),
        CorpusVerdict("c", "attack", False, False, ["timeout"]),
        CorpusVerdict("a", "honest", True, True, seconds=1.0, busy_seconds=0.5),
        CorpusVerdict("b", "honest", False, False, ["patches"]),
    ]
    detection, reason, alarms, seconds, busy = rows(judged)
    assert not detection.met
    assert "accepted: b" in detection.detail
    assert not reason.met
    assert "c (timeout)" in reason.detail
    assert alarms.value == 1
    assert "b (patches)" in alarms.detail
    assert seconds.met
    assert seconds.value == 1.0
    assert busy.met
    assert busy.value == 0.5


def test_a_corpus_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no case"):
        read_corpus(tmp_path)
    (tmp_path / "nki").mkdir()
    file = tmp_path / "nki" / "a.txt"
    for case, word in {"about: x\n": "twin", "": "about"}.items():
        file.write_text(f"x = 1\n=== case\n{case}--- honest\n--- attack\n")
        with pytest.raises(ValueError, match=rf"a\.txt.*{word}"):
            read_corpus(tmp_path)


def test_every_case_is_whole() -> None:
    cases = read_corpus(GATE_CORPUS)
    assert len(cases) > 100
    for case in cases:
        assert case.problem.is_file(), case.name
        assert len(set(case.texts.values())) == len(case.texts), case.name
        assert "honest" in case.texts or case.original, case.name
    covered = {trick for case in cases for trick in case.tricks}
    # on a device only: native timers, persisting cache lines
    assert set(range(1, 41)) - covered == {5, 9}
