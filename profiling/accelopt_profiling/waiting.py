"""Wait with a time limit, and for calls on threads that may never end."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: How long ``run_and_leave`` waits for tasks that it cancels, in seconds.
LEAVING_SECONDS = 2.0


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


class CallEndedError(SystemExit):
    """Raised in a call that nobody waits for any more. A thread that it ends says nothing."""


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of ``call``, run on a thread of its own, without holding up the end of the process.

    ``asyncio.to_thread`` takes a thread of a pool that the interpreter waits for when it exits.
    """
    return await _on_thread(lambda: call(*args, **kwargs), ends=False)


async def interruptible(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of ``call`` as ``in_thread`` does.

    When cancelled, end it at its next line of Python.
    """
    return await _on_thread(lambda: call(*args, **kwargs), ends=True)


async def _on_thread(call: Callable[[], T], ends: bool) -> T:
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    result: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)  # type: ignore[arg-type]

    def work() -> None:
        value, fault = None, None
        try:
            value = context.run(call)
        except CallEndedError:
            return
        except BaseException as error:
            fault = RuntimeError(str(error)) if isinstance(error, StopIteration) else error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, value, fault)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        return await result
    except asyncio.CancelledError:
        if ends and thread.ident is not None and thread.is_alive():
            ended = ctypes.py_object(CallEndedError)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ended)
        raise


def run_and_leave(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of ``work`` as ``asyncio.run`` does, but leave behind what does not end when cancelled."""
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        main = loop.create_task(work)
        try:
            return loop.run_until_complete(main)
        finally:
            rest = asyncio.all_tasks(loop)
            for task in rest:
                task.cancel()
            if rest:
                loop.run_until_complete(asyncio.wait(rest, timeout=LEAVING_SECONDS))
    finally:
        asyncio.set_event_loop(None)
        loop.set_exception_handler(lambda loop, context: None)  # tasks that were left behind
        loop.close()
