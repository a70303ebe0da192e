"""Work that runs at the same time: calls, costs and proofs, each kind with so many places."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from accelopt_agent.search.strategies.strategy import Ask, Judge, Room, Step, Try


@dataclass(frozen=True)
class Places:
    """How many steps of each kind may run at a time."""

    asks: int = 2
    tries: int = 2
    judges: int = 1


class Lanes:
    """Begins steps as tasks and hands back what they come to, in the order in which they end."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._running: dict[asyncio.Task[Any], Step] = {}

    def __len__(self) -> int:
        return len(self._running)

    def count(self, kind: type[Step]) -> int:
        return sum(isinstance(step, kind) for step in self._running.values())

    @property
    def room(self) -> Room:
        return Room(
            self.count(Ask) < self._places.asks,
            self.count(Try) < self._places.tries,
            self.count(Judge) < self._places.judges,
        )

    def begin(self, step: Step, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._running[asyncio.ensure_future(work())] = step

    async def ended(
        self, seconds: float | None, sooner: Coroutine[Any, Any, None] | None = None
    ) -> list[tuple[Step, asyncio.Task[Any]]]:
        """The steps that have ended, waiting for one if there is none; empty when none did in ``seconds``, or before
        ``sooner`` was over."""
        over = asyncio.ensure_future(sooner) if sooner is not None else None
        waited: set[asyncio.Future[Any]] = {*self._running, *([over] if over is not None else [])}
        try:
            await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if over is not None:
                over.cancel()
        return [(self._running.pop(task), task) for task in list(self._running) if task.done()]

    async def end(self) -> None:
        """End everything that still runs, and wait until it has ended."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()
