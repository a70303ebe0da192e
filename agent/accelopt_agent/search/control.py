"""Pauses, continues and ends a search from outside: a person, a signal, the editor, or the time of its budget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

#: After the time of its budget a search has ``LAST_CHECK`` seconds for the check that runs. Whatever runs then, or when
#: a search is stopped, has ``PATIENCE`` seconds to end before it is left alone.
LAST_CHECK, PATIENCE = 6.0, 2.5


class SearchStoppedError(Exception):
    """The search was ended from outside; the message says by what."""


class OutOfTimeError(Exception):
    """The time of the search's budget is over, and that of its last check too."""


class SearchControl:
    """The switch of one search: ``on`` while it is paused, ``reason`` why it was stopped, empty while it was not."""

    def __init__(self, on: bool = False) -> None:
        self._going, self._stopped = asyncio.Event(), asyncio.Event()
        self.reason = ""
        if not on:
            self._going.set()

    @property
    def on(self) -> bool:
        return not self._going.is_set()

    def pause(self) -> None:
        self._going.clear()

    def go_on(self) -> None:
        self._going.set()

    def stop(self, reason: str) -> None:
        """End the search, with what it has."""
        self.reason = self.reason or reason
        self._stopped.set()

    async def over(self) -> None:
        """Wait until the search is continued."""
        await self._going.wait()

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """Return the result of ``work``. Raises SearchStoppedError: the search was stopped before."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise SearchStoppedError(self.reason)
            return task.result()
        finally:
            stop.cancel()
            task.cancel()


async def until_stopped(
    events: AsyncGenerator[T, None], control: SearchControl, seconds_left: Callable[[], float | None]
) -> AsyncGenerator[T, None]:
    """Yield ``events`` until they end, ``control`` stops the search, or its time is long over.

    ``seconds_left`` is below 0 after the time is up, None while there is no limit. What then does not end within
    ``PATIENCE`` seconds is left alone, so that the end of a search depends on nothing that it started.

    Raises:
        SearchStoppedError: ``control`` stopped it.
        OutOfTimeError: ``LAST_CHECK`` seconds have passed after the time was up.
    """
    step: asyncio.Future[T] | None = None
    try:
        while True:
            if control.reason:
                raise SearchStoppedError(control.reason)
            step = asyncio.ensure_future(anext(events))
            while not step.done():
                rest = seconds_left()
                if rest is not None and rest <= -LAST_CHECK:
                    raise OutOfTimeError
                limit = None if rest is None else rest + LAST_CHECK
                try:
                    await control.unless_stopped(asyncio.wait({step}, timeout=limit))
                except SearchStoppedError:
                    if not step.done():
                        raise
            try:
                event = step.result()
            except StopAsyncIteration:
                return
            yield event
    finally:
        ending = asyncio.ensure_future(_closed(events, step))
        ending.add_done_callback(lambda task: task.cancelled() or task.exception())  # of what was left alone
        await asyncio.wait({ending}, timeout=PATIENCE)


async def _closed(events: AsyncGenerator[T, None], step: asyncio.Future[T] | None) -> None:
    if step is not None:
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)
    await events.aclose()
