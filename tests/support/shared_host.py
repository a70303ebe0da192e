"""One local worker for the commands of all tests: to start one and to import PyTorch takes longer than most of them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from accelopt_profiling.hosts.host import HostActivity, HostFacts, JobMessage
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Job, Runtime
from accelopt_profiling.worker.environment import worker_environment

T = TypeVar("T")

#: Each test has its own of these, and no worker reads them.
_OF_A_TEST = {"ACCELOPT_DB", "ACCELOPT_CONFIG", "ACCELOPT_APPROVALS"}


class SharedWorkers:
    """Local hosts in an event loop on a thread: one for each Python and environment that a command asks for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="shared workers")
        self._thread.start()
        self._hosts: dict[str, LocalHost] = {}

    def host(
        self, python: str | None = None, variables: Mapping[str, str] | None = None, origin: str = ""
    ) -> SharedHost:
        """Stand for ``LocalHost``."""
        environment = worker_environment({n: v for n, v in os.environ.items() if n not in _OF_A_TEST})
        key = repr((python, sorted(environment.items()), sorted((variables or {}).items()), origin))
        if key not in self._hosts:
            self._hosts[key] = LocalHost(python, environment, variables, origin)
        return SharedHost(self._hosts[key], self._submit)

    def _submit(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        for host in self._hosts.values():
            asyncio.run_coroutine_threadsafe(host.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SharedHost:
    """A host of ``SharedWorkers`` for one command; its worker outlives it."""

    remote = False

    def __init__(
        self, host: LocalHost, submit: Callable[[Coroutine[Any, Any, Any]], asyncio.Future[Any]]
    ) -> None:
        self._host, self._submit = host, submit
        self.name = host.name
        self.require_isolation = False
        self.on_incomplete: Callable[[str], None] = lambda line: None

    async def _use(self, work: Coroutine[Any, Any, T]) -> T:
        self._host.require_isolation, self._host.on_incomplete = self.require_isolation, self.on_incomplete
        return await self._submit(work)

    async def facts(self) -> HostFacts:
        return await self._use(self._host.facts())

    async def preload(self, runtime: Runtime) -> None:
        await self._use(self._host.preload(runtime))

    async def activity(self) -> HostActivity:
        return await self._use(self._host.activity())

    async def run(self, job: Job) -> AsyncGenerator[JobMessage, None]:
        loop, messages = asyncio.get_running_loop(), asyncio.Queue[JobMessage | None]()

        def put(message: JobMessage | None) -> None:
            with suppress(RuntimeError):  # the command, and its loop, may have ended
                loop.call_soon_threadsafe(messages.put_nowait, message)

        async def pass_on() -> None:
            try:
                async with aclosing(self._host.run(job)) as answers:
                    async for message in answers:
                        put(message)
            finally:
                put(None)

        working = asyncio.ensure_future(self._use(pass_on()))
        try:
            while (message := await messages.get()) is not None:
                yield message
            await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def close(self) -> None:
        """Leave the worker to the next command."""
