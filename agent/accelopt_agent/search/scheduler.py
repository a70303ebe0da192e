"""Runs the steps of a search concurrently: proposals, measurements and validations, each kind up to its limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from accelopt_agent.search.strategies.strategy import (
    AskProposer,
    Capacity,
    SearchStep,
    TryCandidate,
    ValidateNode,
)


@dataclass(frozen=True)
class Concurrency:
    """Limits how many steps of each kind run at a time."""

    proposals: int = 2
    measurements: int = 2
    validations: int = 1


class StepScheduler:
    """Starts steps as tasks and returns their results in the order in which they end."""

    def __init__(self, concurrency: Concurrency) -> None:
        self._limits = concurrency
        self._running: dict[asyncio.Task[Any], SearchStep] = {}

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
        self._running[asyncio.ensure_future(work())] = step

    async def finished(
        self, seconds: float | None, interrupt: Coroutine[Any, Any, None] | None = None
    ) -> list[tuple[SearchStep, asyncio.Task[Any]]]:
        """Return the steps that have ended, waiting until one has. Returns nothing when none ended within ``seconds``
        or before ``interrupt`` completed."""
        interrupted = asyncio.ensure_future(interrupt) if interrupt is not None else None
        awaited: set[asyncio.Future[Any]] = {
            *self._running,
            *([interrupted] if interrupted is not None else []),
        }
        try:
            await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if interrupted is not None:
                interrupted.cancel()
        return [(self._running.pop(task), task) for task in list(self._running) if task.done()]

    async def cancel_all(self, but: type[SearchStep] | None = None) -> None:
        """Cancel everything that still runs, apart from steps of the kind ``but``, and wait until it has ended."""
        ending = [t for t, step in self._running.items() if but is None or not isinstance(step, but)]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        for task in ending:
            del self._running[task]
