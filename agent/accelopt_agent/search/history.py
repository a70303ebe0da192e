"""Presents past runs: the steps of each in order, with their results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from accelopt_agent.events import ModelCall
from accelopt_agent.search.recorder import (
    BASELINE,
    CANDIDATE_JUDGED,
    CANDIDATE_TRIED,
    CONTENT,
    PROCESS,
    REPEATS,
    TRANSCRIPT_ENTRY,
)
from accelopt_agent.search.resumable_run import ResumableRun
from accelopt_memory.memory import Memory
from accelopt_memory.records import Run, RunEvent
from accelopt_profiling.measurement import Latency
from accelopt_profiling.plain import from_plain


@dataclass(frozen=True)
class PastStep:
    """One step of a run: its time (UTC, ISO format), what was done, its result; ``latency`` is that of the version that
    was tried, ``suggestion`` the id of one that was found. ``path`` is the summary of all steps that led to a version
    that was tried or checked, "" for the kernel as it was and where an older run has none."""

    number: int
    at: str
    what: str
    outcome: str = ""
    origin: str = ""
    latency: Latency | None = None
    suggestion: str = ""
    path: str = ""


@dataclass(frozen=True)
class PastRun:
    """A run and its steps.

    ``tried`` counts the candidates that it measured or took over from earlier runs.
    """

    run: Run
    steps: tuple[PastStep, ...]
    calls: tuple[ModelCall, ...] = ()

    @property
    def state(self) -> str:
        """The run's status in one word; "interrupted" where the process that ran it is gone."""
        if self.run.status != "running":
            return self.run.status
        return "running" if _alive(self.run.options.get(PROCESS)) else "interrupted"

    @property
    def can_continue(self) -> bool:
        """Whether it ended before it was done: by its time, a person, a lost host or the end of its process."""
        return (
            self.state in ("interrupted", "cancelled", "failed") or self.run.result.get("ending") == "early"
        )

    @property
    def tried(self) -> int:
        return sum(step.what.startswith("tried") for step in self.steps)

    @property
    def suggestions(self) -> tuple[str, ...]:
        return tuple(step.suggestion for step in self.steps if step.suggestion)


def interrupted(
    memory: Memory, kernel_hash: str, target: str, host: str, content: str
) -> ResumableRun | None:
    """Return the last run for this kernel, target and host if it can be continued: it did not end by itself, runs in no
    process any more, has tried something, and began with the texts of ``content`` (``paid.run_content``).

    Raises:
        MemoryUnavailableError: the memory cannot be read.
    """
    runs = [r for r in _searches(memory, kernel_hash) if (r.target, r.host) == (target, host)]
    if not runs or runs[0].options.get(CONTENT) != content:
        return None
    last = past_run(memory, runs[0])
    if not last.can_continue or not last.tried:
        return None
    instructions = last.run.options.get("instructions")
    wishes = instructions if isinstance(instructions, str) else ""
    return ResumableRun(
        last.run.id, last.run.kernel, kernel_hash=kernel_hash, tried=last.tried, instructions=wishes
    )


def past_runs(memory: Memory, file: str | None = None, most: int = 20) -> list[PastRun]:
    """Return the newest runs of a file (of every file: None), newest first.

    Raises:
        MemoryUnavailableError: the memory cannot be read.
    """
    runs = [run for run in _searches(memory) if file in (None, run.file)][:most]
    return [past_run(memory, run) for run in runs]


def _searches(memory: Memory, kernel_hash: str | None = None) -> list[Run]:
    """Return the runs, newest first, without those that checked one version again."""
    return [run for run in memory.run_log.runs(kernel_hash) if REPEATS not in run.options]


def last_runs(memory: Memory, file: str) -> list[PastRun]:
    """Return the newest run of each kernel of a file that tried something. Raises MemoryUnavailableError."""
    newest: dict[str, PastRun] = {}
    for past in past_runs(memory, file):
        if past.tried:
            newest.setdefault(past.run.kernel, past)
    return list(newest.values())


def past_run(memory: Memory, run: Run) -> PastRun:
    """Return the run with its steps. Raises MemoryUnavailableError."""
    steps = tuple(step for event in memory.run_log.events(run.id) if (step := _step(event)) is not None)
    return PastRun(run, steps, _calls(run.result.get("calls")))


def _step(event: RunEvent) -> PastStep | None:
    """Describe the event for a person. None for one of another version that cannot be read."""
    data, number, at = event.data, event.number, event.created
    try:
        if event.kind == BASELINE:
            return PastStep(number, at, f"took {data['kernel']} as it was", latency=_latency(data))
        if event.kind == CANDIDATE_TRIED:
            detail = f": {data['detail']}" if data.get("outcome") == "failed" and data.get("detail") else ""
            what = f"tried {data['summary']}"
            return PastStep(
                number,
                at,
                what=what,
                outcome=f"{data['outcome']}{detail}",
                origin=str(data["origin"]),
                latency=_latency(data),
                path=str(data.get("path", "")),
            )
        if event.kind == CANDIDATE_JUDGED:
            verdict = data["verdict"]
            why = " ".join(str(reason["message"]) for reason in verdict["reasons"])
            outcome = "checked" if verdict["accepted"] else f"refused by the gate: {why}"
            return PastStep(number, at, f"checked {data['summary']}", outcome, path=data["summary"])
        if event.kind == TRANSCRIPT_ENTRY:
            return PastStep(number, at, f"heard the {data['turn']['role']}")
        if event.kind == "suggestion":
            return PastStep(number, at, "offered it", suggestion=str(data["id"]))
        return PastStep(number, at, event.kind, str(data.get("why", "")))
    except (KeyError, TypeError, ValueError):
        return None


def _alive(process: object) -> bool:
    """Return whether the process of this number runs on this machine. On systems that cannot tell, it may."""
    if not isinstance(process, int) or process <= 0:
        return False
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _latency(data: dict[str, Any]) -> Latency:
    return from_plain(Latency, data["latency"])


def _calls(entries: Any) -> tuple[ModelCall, ...]:
    try:
        return tuple(from_plain(ModelCall, call) for call in entries or ())
    except (TypeError, ValueError):
        return ()
