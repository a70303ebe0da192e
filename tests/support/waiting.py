"""Waiting for what happens, not for a time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

#: How long anything may take to arrive, in seconds. Nothing sleeps this long when all is well.
PATIENCE = 60.0


async def until(
    look: Callable[[], Any], what: str | Callable[[], object] = "it", seconds: float = PATIENCE
) -> Any:
    """Ask again until ``look``, which may be a coroutine function, has an answer that is true; return that.

    ``what`` says in words what is waited for, or returns what there is in its place.
    """
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + seconds, 0.01
    while True:
        answer = look()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if loop.time() > end:
            raise AssertionError(f"waited {seconds:.0f} s for {what() if callable(what) else what}")
        await asyncio.sleep(pause)
        pause = min(0.2, 1.2 * pause)  # asking takes the server's time too
