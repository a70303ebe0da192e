"""Results over a set of kernels, and the papers' metrics of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from accelopt_profiling.measurement import Latency
from accelopt_profiling.plain import from_plain, to_plain

#: "passed": the gate accepts the kernel. "wrong": it does not. "failed": it could not be run or judged. "absent": there
#: is no kernel to run.
Status = Literal["passed", "wrong", "failed", "absent"]


@dataclass(frozen=True)
class SetResult:
    """One kernel of a set. ``latency`` is its own, ``best`` that of the fastest version that a search proved (its own
    where none was faster). ``key`` tells what it is a result of."""

    name: str
    group: str
    status: Status
    detail: str = ""
    latency: Latency = field(default_factory=Latency)
    best: Latency = field(default_factory=Latency)
    steps: tuple[str, ...] = ()
    tried: int = 0
    money: float | None = None
    key: str = ""

    @property
    def speedup(self) -> float | None:
        """The kernel's time over that of its best version; None where one is not known."""
        if self.status != "passed" or not self.latency.us or not self.best.us:
            return None
        return self.latency.us / self.best.us


@dataclass(frozen=True)
class Metrics:
    """``success`` is the share of tasks that the gate accepts; ``fast_1`` the share accepted and at least as fast as
    the kernel that the search began with; the speedups are means over the accepted kernels whose time is known,
    ``timed`` of them. Shares are percent; None over nothing."""

    group: str
    tasks: int
    success: float | None
    fast_1: float | None
    faster: float | None
    mean_speedup: float | None
    geometric_mean_speedup: float | None
    timed: int
    known: str
    money: float | None


def metrics(results: Sequence[SetResult]) -> list[Metrics]:
    """The metrics per group, then over all."""
    groups = dict.fromkeys(result.group for result in results)
    rows = [_metrics(group, [r for r in results if r.group == group]) for group in groups]
    return [*rows, _metrics("all", results)] if len(rows) != 1 else rows


def _metrics(group: str, results: Sequence[SetResult]) -> Metrics:
    timed = [r for r in results if r.speedup is not None]
    speedups = [s for r in timed if (s := r.speedup) is not None]
    known = sorted({str(r.latency.known.value) for r in timed} | {str(r.best.known.value) for r in timed})
    priced = [r.money for r in results if r.money is not None]
    return Metrics(
        group,
        len(results),
        _share(sum(r.status == "passed" for r in results), len(results)),
        _share(sum(s >= 1.0 for s in speedups), len(results)),
        _share(sum(s > 1.0 for s in speedups), len(results)),
        sum(speedups) / len(speedups) if speedups else None,
        math.exp(sum(map(math.log, speedups)) / len(speedups)) if speedups else None,
        len(timed),
        " and ".join(known),
        sum(priced) if priced else None,
    )


def _share(count: int, of: int) -> float | None:
    return 100.0 * count / of if of else None


class Journal:
    """Results as they come, one JSON line each, so that a run that was ended goes on. A line that was cut off is passed
    over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = {result.key: result for result in _read(path)}

    def get(self, key: str) -> SetResult | None:
        return self._known.get(key)

    def add(self, result: SetResult) -> None:
        """Raises OSError when it cannot be written."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(b"\n" + json.dumps(to_plain(result), ensure_ascii=False).encode() + b"\n")
        self._known[result.key] = result


def _read(path: Path) -> Iterable[SetResult]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return
    for line in filter(None, lines):
        try:
            yield from_plain(SetResult, json.loads(line))
        except ValueError:
            continue
