"""Loads the results of an interrupted run, so that they are not paid for again."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.search.recorder import (
    CANDIDATE_JUDGED,
    CANDIDATE_TRIED,
    RESUMES,
    TRANSCRIPT_ENTRY,
    VERDICT_KEY,
    Recorder,
)
from accelopt_agent.search.transcript import TranscriptEntry
from accelopt_memory.memory import Memory
from accelopt_memory.records import Run, RunEvent
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.plain import from_plain


def answer_key(fingerprint: str, proposer: str, count: int) -> str:
    """Return the key of the ``count``-th answer of ``proposer`` about the rewrite ``fingerprint``."""
    return f"answer {proposer} {count} {fingerprint}"


@dataclass
class ResumedResults:
    """Measurements, failures and verdicts by the fingerprint of the rewrite (``fingerprint.rewrite_fingerprint``), and
    the transcripts of paid answers, complete or not, by ``answer_key``. ``run`` is the interrupted run."""

    costs: dict[str, KernelMeasurement] = field(default_factory=dict)
    failures: dict[str, CostUnavailableError] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    transcripts: dict[str, list[TranscriptEntry]] = field(default_factory=dict)
    run: str | None = None

    def knows(self, rewrite: str) -> bool:
        """Return whether the rewrite of this fingerprint was tried."""
        return rewrite in self.costs or rewrite in self.failures


async def resumed_results(recorder: Recorder, kernel_hash: str, target: str, host: str) -> ResumedResults:
    """Load the results of the last run for this kernel, target and host, if it was interrupted, and of the interrupted
    runs that it had resumed."""
    nothing: tuple[str | None, list[RunEvent]] = (None, [])
    run, events = await recorder.read(lambda m: _paid_for(m, kernel_hash, target, host), nothing)
    found = ResumedResults(run=run)
    for event in events:
        try:
            if event.kind == CANDIDATE_TRIED and event.key and event.data.get("measurement"):
                found.costs[event.key] = from_plain(KernelMeasurement, event.data["measurement"])
            elif event.kind == CANDIDATE_TRIED and event.key:
                failure, why = event.data["failure"], str(event.data["detail"])
                found.failures[event.key] = CostUnavailableError(
                    str(failure["code"]), why, lasting=bool(failure["lasting"])
                )
            elif event.kind == CANDIDATE_JUDGED and event.key:
                verdict = from_plain(Verdict, event.data["verdict"])
                found.verdicts[event.key.removeprefix(VERDICT_KEY)] = verdict
            elif event.kind == TRANSCRIPT_ENTRY:
                entry = from_plain(TranscriptEntry, event.data["turn"])
                found.transcripts.setdefault(str(event.data["answer"]), []).append(entry)
        except (KeyError, TypeError, ValueError):
            continue  # written by another version: found out again
    return found


def interrupted_run(memory: Memory, kernel_hash: str, target: str, host: str) -> Run | None:
    """Return the last run for this kernel, target and host, if it was interrupted. Raises MemoryUnavailableError."""
    same = [r for r in memory.run_log.runs(kernel_hash) if (r.target, r.host) == (target, host)]
    return same[0] if same and same[0].status in ("running", "cancelled") else None


def chain(memory: Memory, run: Run) -> list[Run]:
    """Return the runs that ``run`` resumed, oldest first, and itself last. Raises MemoryUnavailableError."""
    found: list[Run] = []
    at: Run | None = run
    while at is not None and at.id not in {r.id for r in found}:
        found.insert(0, at)
        before = at.options.get(RESUMES)
        at = memory.run_log.run(before) if isinstance(before, str) else None
    return found


def _paid_for(memory: Memory, kernel_hash: str, target: str, host: str) -> tuple[str | None, list[RunEvent]]:
    last = interrupted_run(memory, kernel_hash, target, host)
    if last is None:
        return None, []
    return last.id, [event for run in chain(memory, last) for event in memory.run_log.events(run.id)]
