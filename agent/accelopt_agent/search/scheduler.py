"""Runs the steps of a search concurrently, each kind up to its limit.

They are proposals, measurements and validations: the gate's verdict, and a timing beside the original where a device
is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from accelopt_agent.evaluation.evaluators import CostUnavailableError, GateEvaluator, SideBySideTimer
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.node import Node
from accelopt_agent.search.recorder import Recorder
from accelopt_agent.search.strategies.strategy import (
    PAID,
    AskProposer,
    Capacity,
    SearchStep,
    TryCandidate,
    ValidateNode,
)
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import LIMITS
from accelopt_profiling.timing.statistics import TimeComparison


@dataclass(frozen=True)
class Concurrency:
    """Limits how many steps of each kind run at a time."""

    proposals: int = 2
    measurements: int = 2
    validations: int = 1


#: How long a step takes where only the order of results matters, in tries.
_LENGTH: dict[type[SearchStep], int] = {AskProposer: 0, TryCandidate: 1, ValidateNode: 4}


class StepScheduler:
    """Starts steps as tasks and returns their results as if each kind of step always took equally long. So a search
    does the same, however busy the machine is and whichever version takes longer. Only what somebody is paid for comes
    when it comes."""

    def __init__(self, concurrency: Concurrency) -> None:
        self._limits = concurrency
        self._running: dict[asyncio.Task[Any], SearchStep] = {}
        self._ends: dict[asyncio.Task[Any], int] = {}  # in the order in which they began
        self._now = 0

    def __len__(self) -> int:
        return len(self._running)

    def count(self, kind: type[SearchStep]) -> int:
        """Return how many steps of ``kind`` run now."""
        return sum(isinstance(step, kind) for step in self._running.values())

    @property
    def free(self) -> Capacity:
        """Return which kinds of steps can be started now."""
        return Capacity(
            self.count(AskProposer) < self._limits.proposals,
            self.count(TryCandidate) < self._limits.measurements,
            self.count(ValidateNode) < self._limits.validations,
        )

    def start(self, step: SearchStep, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        task = asyncio.ensure_future(work())
        self._running[task] = step
        if not (isinstance(step, AskProposer) and step.proposer in PAID):
            self._ends[task] = self._now + _LENGTH[type(step)]

    async def finished(
        self, seconds: float | None, interrupt: Coroutine[Any, Any, None] | None = None
    ) -> list[tuple[SearchStep, asyncio.Task[Any]]]:
        """Return the steps whose results come next, waiting for them.

        Returns nothing when none came within ``seconds`` or before ``interrupt`` completed.
        """
        interrupted = asyncio.ensure_future(interrupt) if interrupt is not None else None
        due = [task for task in self._running if task not in self._ends]
        if self._ends:
            due.append(min(self._ends, key=lambda task: self._ends[task]))
        awaited: set[asyncio.Future[Any]] = {*due, *([interrupted] if interrupted is not None else [])}
        try:
            await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if interrupted is not None:
                interrupted.cancel()
        results = [task for task in due if task.done()]
        self._now = max(self._now, *(self._ends.pop(task, 0) for task in results), 0)
        return [(self._running.pop(task), task) for task in results]

    async def cancel_all(self, but: type[SearchStep] | None = None) -> None:
        """Cancel everything that still runs, apart from steps of the kind ``but``, and wait until it has ended."""
        ending = [t for t, step in self._running.items() if but is None or not isinstance(step, but)]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        for task in ending:
            del self._running[task]
            self._ends.pop(task, None)


@dataclass(frozen=True)
class ValidationResult:
    """The gate's ``verdict``, and the ``comparison`` with the original in one session on a device; ``untimed`` is why
    that failed. Both are None where there is no device."""

    verdict: Verdict
    comparison: TimeComparison | None = None
    untimed: CostUnavailableError | None = None

    @property
    def not_offered(self) -> str:
        """Return why an accepted version is not offered, as a sentence. Empty where it is."""
        if self.untimed is not None:
            return f"A candidate could not be timed beside the original, so it is not offered: {self.untimed}"
        side = self.comparison
        if side is None or side.answer == "faster":
            return ""
        span = f"{side.low:.3f} to {side.high:.3f} times as fast in {side.pairs} rounds"
        return f"A candidate is {side.answer} beside the original in one session ({span}); it is not offered."


class CandidateValidator:
    """Asks the gate about each version once."""

    def __init__(self, gate: GateEvaluator, recorder: Recorder, meter: Meter) -> None:
        self._gate, self._recorder, self._meter = gate, recorder, meter

    async def validate(self, node: Node) -> ValidationResult:
        """Get the gate's verdict on ``node``.

        Time an accepted one that seems faster beside the original, in one session, where a device can.

        Raises:
            CostUnavailableError: the gate gave no verdict.
            EvaluatorLostError: the host is gone.
        """
        about = node.text, node.kernel.name
        verdict, _ = await self._meter.paid(
            "verdict",
            Verdict,
            about,
            [],
            lambda: self._check(node),
            lambda verdict: not any(reason.code in LIMITS for reason in verdict.reasons),
        )
        if not (verdict.accepted and node.clearly_faster and isinstance(self._gate, SideBySideTimer)):
            return ValidationResult(verdict)
        try:
            return ValidationResult(verdict, await self._gate.compare(node.text, node.kernel.name))
        except CostUnavailableError as error:
            return ValidationResult(verdict, untimed=error)

    async def _check(self, node: Node) -> Verdict:
        """Run the gate and store its receipt before the verdict is used."""
        about = f": {node.candidate.last_step}" if node.candidate is not None else ""
        verdict, receipt = await self._gate.check(
            node.text, node.kernel.name, lambda step: self._meter.tell(f"checking, {step}{about}")
        )
        self._meter.judged += 1
        await self._recorder.receipt(receipt)
        return replace(verdict, receipt=verdict.receipt or receipt.id)
