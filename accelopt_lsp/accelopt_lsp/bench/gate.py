"""How many tricks the gate sees through, how often it blames an honest kernel, and how long it takes."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from accelopt_lsp.bench.gate_corpus import CorpusCase
from accelopt_lsp.bench.row import Row
from accelopt_profiling.gate.cases import CaseOptions
from accelopt_profiling.gate.gate import check
from accelopt_profiling.hosts.host import Host


@dataclass(frozen=True)
class Judged:
    """One file of the corpus and what the gate said of it. ``right`` tells that it said what it should, and for the
    right reason; ``seconds`` is the whole check, ``reference_seconds`` the problem's own part of it.
    """

    case: str
    file: str
    accepted: bool
    right: bool
    codes: list[str] = field(default_factory=list)
    said: str = ""
    seconds: float = 0.0
    reference_seconds: float = 0.0

    @property
    def attack(self) -> bool:
        return self.file == "attack.py"


async def judge_corpus(
    host: Host, cases: list[CorpusCase], *, reading: bool = True
) -> AsyncGenerator[Judged, None]:
    """Check every attack and every twin, one after another. Without ``reading`` the run has to find them alone."""
    for case in cases:
        for file in ("attack.py", "honest.py"):
            yield await _judge(host, case, file, reading)


async def _judge(host: Host, case: CorpusCase, file: str, reading: bool) -> Judged:
    request = dataclasses.replace(case.request(file), options=CaseOptions(reading=reading))
    started = time.perf_counter()
    verdict, receipt = await check(host, request)
    seconds = time.perf_counter() - started
    codes = [reason.code for reason in verdict.reasons]
    expected = set(case.manifest.refused_for)
    right = verdict.accepted if file == "honest.py" else not verdict.accepted and bool(set(codes) & expected)
    steps = receipt.body["steps"]
    said = verdict.reasons[0].message if verdict.reasons else ""
    return Judged(
        case.name, file, verdict.accepted, right, list(dict.fromkeys(codes)), said, seconds,
        steps.get("gate.reference", 0.0),
    )  # fmt: skip


def rows(judged: list[Judged], *, reading: bool = True) -> list[Row]:
    """The table: detection, right reasons, false alarms, and the time of a check."""
    attacks, twins = [j for j in judged if j.attack], [j for j in judged if not j.attack]
    caught = [j for j in attacks if not j.accepted]
    alarms = [j for j in twins if not j.accepted]
    missed = ", ".join(j.case for j in attacks if j.accepted)
    wrong = ", ".join(f"{j.case} ({', '.join(j.codes[:2])})" for j in caught if not j.right)
    blamed = ", ".join(f"{j.case} ({', '.join(j.codes[:2])})" for j in alarms)
    how = "" if reading else ", by running alone"
    times = [j.seconds - j.reference_seconds for j in twins if j.accepted]
    middle = statistics.median(times) if times else float("inf")
    return [
        Row(f"attacks refused{how}", "100 %", 100 * len(caught) / max(len(attacks), 1), "%",
            len(caught) == len(attacks) > 0, f"of {len(attacks)}" + (f"; accepted: {missed}" if missed else "")),
        Row(f"refused for the right reason{how}", "100 %", 100 * sum(j.right for j in attacks) / max(len(attacks), 1),
            "%", all(j.right for j in attacks), wrong or missed),
        Row(f"honest twins refused{how}", "0", len(alarms), "twins", not alarms, f"of {len(twins)}"
            + (f": {blamed}" if blamed else "")),
        Row("time of a whole check besides the reference, median", "2 s", middle, "s", middle <= 2,
            f"largest {max(times, default=0):.3g} s, over {len(times)} accepted twins, one at a time"),
    ]  # fmt: skip
