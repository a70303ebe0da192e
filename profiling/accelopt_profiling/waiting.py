"""Wait for a task with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Return the result of ``work``; cancel it after so many seconds.

    ``asyncio.wait_for`` before Python 3.12 loses a cancellation that comes in the same moment as the result: a job
    would go on although its profile was cancelled. This does not.

    Raises:
        asyncio.TimeoutError: the time is over.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
            if task.cancelled():
                raise asyncio.TimeoutError
        return task.result()
    finally:
        task.cancel()
