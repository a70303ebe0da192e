"""Call the service in the command line's own process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from accelopt_lsp.errors import HostUnavailableError
from accelopt_lsp.resources import say_once
from accelopt_lsp.service.surface import Surface
from accelopt_lsp.stderr import say
from accelopt_profiling.waiting import LEAVING_SECONDS, run_and_leave, within

if TYPE_CHECKING:
    from accelopt_lsp.service.local import LocalService

T = TypeVar("T")


class Terminal(Surface):
    """Says on standard error what a service has to say; ``without_memory`` is what that costs."""

    def __init__(self, without_memory: str = "Nothing of this is remembered.") -> None:
        self._without_memory = without_memory

    def host_problem(self, reason: str | None) -> None:
        """End the command: who names a host wants that one."""
        if reason is not None:
            raise HostUnavailableError(reason)

    def memory_problem(self, reason: str) -> None:
        say(f"{self._without_memory} {reason}")

    def isolation_problem(self, line: str) -> None:
        say_once(line)


def call_service(work: Callable[[LocalService], Awaitable[T]], surface: Surface | None = None) -> T:
    """Return what ``work`` does with a service, which is closed then."""

    from accelopt_lsp.service.local import LocalService

    async def called() -> T:
        service = LocalService(surface or Terminal())
        try:
            return await work(service)
        finally:
            with suppress(asyncio.TimeoutError):
                await within(LEAVING_SECONDS, service.close())

    return run_and_leave(called())
