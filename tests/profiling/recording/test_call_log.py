"""What processes write down of their calls is read as one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from accelopt_profiling.recording.call_log import CallLog, read_calls
from accelopt_profiling.recording.recorded_call import RecordedCall

FLOATS = {"dtype": "float32", "elements": 4, "fill": "normal", "mean": 0.0, "deviation": 1.0}


def test_equal_calls_of_two_processes_are_one(tmp_path: Path) -> None:
    for name, count in (("1.jsonl", 2), ("2.jsonl", 3)):
        log = CallLog(tmp_path)
        call = RecordedCall("f", [count > 0], storages=[FLOATS])
        number = log.add("/k.py", call)
        call.count, call.kernels = count, {"kernel": 1}
        log.change(number)
        log.note(launches=count)
        log.flush()
        (written,) = [p for p in tmp_path.glob("*.jsonl") if p.name not in ("1.jsonl", "2.jsonl")]
        written.rename(tmp_path / name)
    with (tmp_path / "2.jsonl").open("a") as cut_short:
        cut_short.write('{"number": 0, "cou')
    read = read_calls(tmp_path)
    (merged,) = read.calls["/k.py"]
    assert (merged.count, merged.kernels) == (5, {"kernel": 1})
    assert [f["launches"] for f in read.facts] == [2, 3]


def test_a_fork_goes_on_with_calls_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = CallLog(tmp_path)
    log.add("/k.py", RecordedCall("f", [1], kernels={"kernel": 1}))
    monkeypatch.setattr(os, "getpid", lambda: 1)
    number = log.add("/k.py", RecordedCall("f", [2]))
    log.calls[number].kernels["kernel"] = 1
    log.change(0)
    log.change(number, now=True)
    assert [c.kernels for c in read_calls(tmp_path).calls["/k.py"]] == [{"kernel": 1}, {"kernel": 1}]
