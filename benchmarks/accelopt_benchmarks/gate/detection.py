"""Measures the gate's detection rate, its false alarms and the time of a check, and compares verdicts on a busy
machine with those on a quiet one: they have to be the same.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_benchmarks.gate.corpus import CorpusCase
from accelopt_benchmarks.result import GoalResult
from accelopt_lsp.gate_check import without_kernel
from accelopt_profiling.gate.gate import check
from accelopt_profiling.gate.request import CaseOptions
from accelopt_profiling.hosts.host import Host


@dataclass(frozen=True)
class CorpusVerdict:
    """One text of the corpus and what the gate said of it.

    ``right`` tells that it said what it should, and for the right reason; ``seconds`` is the whole check,
    ``reference_seconds`` the problem's own part of it, ``busy_seconds`` the processor time of both. ``probes`` names
    those that refuse it, of reading too where that is not let to; ``costs`` are processor seconds by probe.
    """

    case: str
    version: str
    accepted: bool
    right: bool
    codes: list[str] = field(default_factory=list)
    said: str = ""
    seconds: float = 0.0
    reference_seconds: float = 0.0
    busy_seconds: float = 0.0
    probes: list[str] = field(default_factory=list)
    costs: dict[str, float] = field(default_factory=dict)

    @property
    def attack(self) -> bool:
        return self.version == "attack"


async def judge_corpus(
    host: Host, cases: list[CorpusCase], *, reading: bool = True
) -> AsyncGenerator[CorpusVerdict, None]:
    """Check every attack and every twin, one after another.

    Without ``reading`` the run has to find them alone.
    """
    for case in cases:
        for version in case.texts:
            yield await judge(host, case, version, reading=reading)


async def judge(host: Host, case: CorpusCase, version: str, *, reading: bool = True) -> CorpusVerdict:
    """Check one text of a case, timing the check."""
    started, before = time.perf_counter(), processor_seconds()
    body: dict[str, Any] = {}
    verdict = without_kernel(case.texts[version])
    if verdict is None:
        request = dataclasses.replace(case.request(version), options=CaseOptions(reading=reading))
        verdict, receipt = await check(host, request)
        body = receipt.body
    seconds, busy = time.perf_counter() - started, processor_seconds() - before
    codes = [reason.code for reason in verdict.reasons]
    expected = set(case.refused_for)
    right = verdict.accepted if version == "honest" else not verdict.accepted and bool(set(codes) & expected)
    message = verdict.reasons[0].message if verdict.reasons else ""
    return CorpusVerdict(
        case.name,
        version,
        accepted=verdict.accepted,
        right=right,
        codes=list(dict.fromkeys(codes)),
        said=message,
        seconds=seconds,
        reference_seconds=body.get("steps", {}).get("gate.reference", 0.0),
        busy_seconds=busy,
        probes=_refusing(body),
        costs=body.get("costs", {}),
    )


def _refusing(body: Mapping[str, Any]) -> list[str]:
    """Return the probes that refuse, from a receipt's ``body``. Of a text without a kernel what sees that."""
    readings = [f"reading: {f['code']}" for f in body.get("findings", ()) if f["certain"]]
    return list(dict.fromkeys([*readings, *body.get("refused_by", [] if body else ["no kernel"])]))


def processor_seconds() -> float:
    """Return the processor time that this process and everything it started have used so far (Linux; 0 where nothing
    tells)."""
    parents: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it ended meanwhile
        ticks = sum(int(field) for field in fields[11:15])
        parents[int(entry.name)] = (int(fields[1]), ticks / os.sysconf("SC_CLK_TCK"))
    ours, grown = {os.getpid()}, 0
    while grown != len(ours):
        grown = len(ours)
        ours |= {pid for pid, (parent, _) in parents.items() if parent in ours}
    return sum(parents[pid][1] for pid in ours if pid in parents)


def rows(judged: list[CorpusVerdict], *, reading: bool = True) -> list[GoalResult]:
    """Return the table: detection, right reasons, false alarms, and the time of a check."""
    attacks, twins = [j for j in judged if j.attack], [j for j in judged if not j.attack]
    caught = [j for j in attacks if not j.accepted]
    alarms = [j for j in twins if not j.accepted]
    missed = ", ".join(j.case for j in attacks if j.accepted)
    wrong = ", ".join(f"{j.case} ({', '.join(j.codes[:2])})" for j in caught if not j.right)
    blamed = ", ".join(f"{j.case} ({', '.join(j.codes[:2])})" for j in alarms)
    how = "" if reading else ", by running alone"
    times = [j.seconds - j.reference_seconds for j in twins if j.accepted]
    middle = statistics.median(times) if times else float("inf")
    busy = statistics.median([j.busy_seconds for j in twins if j.accepted] or [float("inf")])
    load = f"; load of the machine at the end {os.getloadavg()[0]:.3g}"
    return [
        GoalResult(f"attacks refused{how}", "100 %", 100 * len(caught) / max(len(attacks), 1), "%",
            len(caught) == len(attacks) > 0, f"of {len(attacks)}" + (f"; accepted: {missed}" if missed else "")),
        GoalResult(f"refused for the right reason{how}", "100 %",
            100 * sum(j.right for j in attacks) / max(len(attacks), 1), "%", all(j.right for j in attacks),
            wrong or missed),
        GoalResult(f"honest twins refused{how}", "0", len(alarms), "twins", not alarms, f"of {len(twins)}"
            + (f": {blamed}" if blamed else "")),
        GoalResult("time of a whole check besides the reference, median", "2 s", middle, "s", middle <= 2,
            f"largest {max(times, default=0):.3g} s, over {len(times)} accepted twins, one at a time" + load),
        GoalResult("processor time of a whole check with the reference, median", "2 s", busy, "s", busy <= 2,
            "all processes of the check; what it takes where nothing else runs"),
    ]  # fmt: skip


@contextmanager
def busy_processes(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run so many processes that do nothing but take processor time, until the body ends."""
    running: list[subprocess.Popen[bytes]] = []
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
            running.append(process)
        yield running


def read_verdicts(file: Path) -> dict[tuple[str, str], bool]:
    """Return which texts of which cases were accepted, of what ``accelopt bench gate --json`` printed.

    Raises:
        ValueError: it is something else.
    """
    try:
        cases = json.loads(file.read_text(encoding="utf-8"))["cases"]
        return {(c["case"], c["version"]): bool(c["accepted"]) for c in cases}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} holds no verdicts ({type(error).__name__}: {error})") from None


def compared(judged: Sequence[CorpusVerdict], before: dict[tuple[str, str], bool], load: int) -> GoalResult:
    """Return how many verdicts differ from those of an earlier run."""
    both = [j for j in judged if (j.case, j.version) in before]
    other = [f"{j.case}/{j.version}" for j in both if before[j.case, j.version] is not j.accepted]
    how = f"of {len(both)}, with {load} busy processes" + (f": {', '.join(other)}" if other else "")
    return GoalResult(
        "verdicts other than before", "0", len(other), "verdicts", bool(both) and not other, how
    )
