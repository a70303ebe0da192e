"""Waiting with a limit: results, errors, the end of patience, and cancellations that are never lost."""

from __future__ import annotations

import asyncio

import pytest

from accelopt_profiling.waiting import within


async def test_results_and_errors_come_through() -> None:
    async def fails() -> None:
        raise ValueError("on purpose")

    assert await within(5, asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="on purpose"):
        await within(5, fails())


async def test_what_takes_too_long_is_cancelled() -> None:
    ended = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    with pytest.raises((TimeoutError, asyncio.TimeoutError)):
        await within(0.01, endless())
    assert ended.is_set()


async def test_a_cancellation_in_the_moment_of_the_result_is_not_lost() -> None:
    """``asyncio.wait_for`` of Python 3.11 gives the result here and goes on."""
    result: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(within(5, result))
    await asyncio.sleep(0.01)
    result.set_result("done")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_cancelling_ends_the_work() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    waiting = asyncio.ensure_future(within(5, queue.get()))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    queue.put_nowait(1)
    assert await within(5, queue.get()) == 1
