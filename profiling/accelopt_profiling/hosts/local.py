"""This machine as a host: the same worker program, as a child process."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import accelopt_profiling
from accelopt_profiling.hosts.connection import WorkerConnection
from accelopt_profiling.hosts.host import HostActivity, HostFacts, Progress
from accelopt_profiling.jobs import Job, Runtime


class LocalHost:
    """Runs jobs in a worker on this machine, started when it is first needed and again after it was lost.

    ``python`` is the interpreter whose packages (torch, triton, the user's own) kernels see; this one by default.
    """

    name = "local"
    remote = False

    def __init__(self, python: str | None = None, environment: dict[str, str] | None = None) -> None:
        self._python = python or sys.executable
        self._environment = environment
        self._connection: WorkerConnection | None = None
        self._starting = asyncio.Lock()

    @property
    def process(self) -> int | None:
        """The worker's process, None before the first job and after ``close``."""
        return self._connection.process if self._connection is not None else None

    async def _connected(self) -> WorkerConnection:
        async with self._starting:
            if self._connection is None or not self._connection.alive:
                if self._connection is not None:
                    await self._connection.close()
                package = Path(accelopt_profiling.__file__).parent.parent
                bootstrap = f"import sys; sys.path.insert(0, {str(package)!r})"
                command = [
                    self._python,
                    "-c",
                    f"{bootstrap}; from accelopt_profiling.worker.__main__ import main; main()",
                ]
                connection = WorkerConnection(self.name, command, environment=self._environment, beside=True)
                await connection.start()
                self._connection = connection
            return self._connection

    async def facts(self) -> HostFacts:
        return (await self._connected()).facts

    async def warm(self, runtime: Runtime) -> None:
        await (await self._connected()).warm(runtime)

    async def run(self, job: Job) -> AsyncGenerator[Progress, None]:
        connection = await self._connected()
        async with contextlib.aclosing(connection.run(job)) as messages:
            async for progress in messages:
                yield progress

    async def activity(self) -> HostActivity:
        return await (await self._connected()).activity()

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
