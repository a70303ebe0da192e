"""Keep the calls that one process made, and write them down as they come: one JSON object a line.

A line is a new call, or what changed of the counts since the last one; a process that dies leaves what it wrote. A fork
has the calls of its parent, and a file of its own, in which counts of calls that are not there say nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from accelopt_profiling.plain import from_plain
from accelopt_profiling.recording.recorded_call import RecordedCall

_SECONDS_BETWEEN = 1.0


class CallLog:
    """The calls of this process by signature, written to ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changed: set[int] = set()
        self._notes: dict[str, Any] = {}
        self._flushed = 0.0
        self.calls: list[RecordedCall] = []

    def add(self, file: str, call: RecordedCall) -> int:
        """Add a new call of the kernel file ``file``, whose ``count`` and ``kernels`` grow; return its number."""
        self.calls.append(call)
        number = len(self.calls) - 1
        self._write([{"number": number, "file": file, "call": asdict(call)}])
        self.change(number)
        return number

    def change(self, number: int, now: bool = False) -> None:
        """Take note that a call was made again, or (``now``: a kill would lose it) launched a further kernel."""
        self._changed.add(number)
        if now or time.monotonic() - self._flushed > _SECONDS_BETWEEN:
            self.flush()

    def note(self, **facts: Any) -> None:
        """Write facts about the run: what was launched but could not be recorded, why it was stopped."""
        self._notes.update(facts)

    def flush(self) -> None:
        """Write the counts that changed, and the facts."""
        self._flushed = time.monotonic()
        lines: list[dict[str, Any]] = [
            {"number": n, "count": self.calls[n].count, "kernels": self.calls[n].kernels}
            for n in sorted(self._changed)
        ]
        if self._notes:
            lines.append({"facts": self._notes})
        self._changed.clear()
        self._write(lines)

    def _write(self, lines: list[dict[str, Any]]) -> None:
        with (self._folder / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write("".join(f"{json.dumps(line)}\n" for line in lines))


@dataclass
class ReadCalls:
    """What the processes of a command wrote: calls by kernel file, and the facts of each process."""

    calls: dict[str, list[RecordedCall]] = field(default_factory=dict)
    facts: list[dict[str, Any]] = field(default_factory=list)


def read_calls(folder: Path) -> ReadCalls:
    """Read the logs of all processes; equal calls of several are one.

    A line cut short by a kill is left out.
    """
    read = ReadCalls()
    for path in sorted(folder.glob("*.jsonl")):
        calls: dict[int, tuple[str, RecordedCall]] = {}
        facts: dict[str, Any] = {}
        for line in _lines(path):
            if "call" in line:
                calls[int(line["number"])] = (str(line["file"]), from_plain(RecordedCall, line["call"]))
            elif "facts" in line:
                facts.update(line["facts"])
            elif line.get("number") in calls:
                _, call = calls[line["number"]]
                call.count, call.kernels = int(line["count"]), dict(line["kernels"])
        for file, call in calls.values():
            _merge(read.calls.setdefault(file, []), call)
        read.facts.append(facts)
    return read


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict):
            yield line


def _merge(calls: list[RecordedCall], new: RecordedCall) -> None:
    same = next((call for call in calls if _signature(call) == _signature(new)), None)
    if same is None:
        calls.append(new)
    else:
        same.count, same.kernels = same.count + new.count, {**new.kernels, **same.kernels}


def _signature(call: RecordedCall) -> str:
    return key_of(call.entry, call.arguments, call.grid, (s["dtype"] for s in call.storages))


def key_of(entry: str, values: list[Any], grid: list[int] | None, dtypes: Iterable[str]) -> str:
    """Return what makes two calls the same: function, arguments, shapes and dtypes, not the tensors' values."""
    return json.dumps([entry, values, grid, list(dtypes)])
