"""The base of hosts with one connection to one worker: connect when needed, and again after a loss."""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable

from accelopt_profiling.hosts.host import HostActivity, HostFacts, HostUnreachableError, JobMessage
from accelopt_profiling.hosts.worker_connection import WorkerConnection
from accelopt_profiling.jobs import Job, Runtime

_LONGEST_PAUSE = 60.0


class WorkerHost(ABC):
    """A host with one connection, opened when it is first needed and again after it was lost.

    ``require_isolation`` refuses a host that does not keep all from a step that a sandbox does, and ``on_incomplete``
    is called with one line about such a host, once. A failed try is not repeated for a pause that grows from
    ``first_pause`` to 60 seconds; with None every call tries.
    """

    remote: bool

    def __init__(self, name: str, first_pause: float | None) -> None:
        self.name = name
        self.require_isolation = False
        self.on_incomplete: Callable[[str], None] = lambda line: None
        self._told = False
        self._first_pause = first_pause
        self._pause = self._next_try = 0.0
        self._failure = ""
        self._connection: WorkerConnection | None = None
        self._starting = asyncio.Lock()

    @abstractmethod
    def _new_connection(self) -> WorkerConnection:
        """Return a connection that was not started yet."""

    def _with_advice(self, message: str) -> str:
        """Return the message, with advice where there is any."""
        return message

    @property
    def process(self) -> int | None:
        """The connection's process on this machine, None before the first job and after ``close``."""
        return self._connection.process if self._connection is not None else None

    async def _connected(self) -> WorkerConnection:
        async with self._starting:
            if self._connection is not None:
                if self._connection.alive:
                    return self._connection
                await self._connection.close()
            wait = self._next_try - time.monotonic()
            if wait > 0:
                raise HostUnreachableError(f"{self._failure} (next try in {wait:.0f} s)", wait)
            self._connection = connection = self._new_connection()
            try:
                await connection.start()
            except HostUnreachableError as error:
                self._connection = None
                self._failure = self._with_advice(str(error))
                raise HostUnreachableError(self._failure, self._wait_for_next_try()) from None
            await self._check_isolation(connection)
            self._pause = self._next_try = 0.0
            return connection

    async def _check_isolation(self, connection: WorkerConnection) -> None:
        """Tell once what the host does not keep from user code.

        Raises HostUnreachableError where that is required.
        """
        isolation = connection.facts.isolation
        if isolation.complete:
            return
        lacks = f"{self.name}: kernels are not isolated completely: {isolation.note or 'the host does not say how'}"
        if self.require_isolation:
            self._connection = None
            await connection.close()
            raise HostUnreachableError(f"{lacks}. Nothing was run, as `require_isolation` is set.")
        if not self._told:
            self._told = True
            self.on_incomplete(f"{lacks}.")

    def _wait_for_next_try(self) -> float | None:
        if self._first_pause is None:
            return None
        self._pause = min(_LONGEST_PAUSE, max(self._first_pause, 2 * self._pause))
        self._next_try = time.monotonic() + self._pause
        return self._pause

    async def facts(self) -> HostFacts:
        return (await self._connected()).facts

    async def preload(self, runtime: Runtime) -> None:
        await (await self._connected()).preload(runtime)

    async def run(self, job: Job) -> AsyncGenerator[JobMessage, None]:
        connection = await self._connected()
        async with contextlib.aclosing(connection.run(job)) as messages:
            async for progress in messages:
                yield progress

    async def activity(self) -> HostActivity:
        return await (await self._connected()).activity()

    async def close(self) -> None:
        """End the worker and everything it runs, also one that is just being started."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
