"""A Ray cluster as a host: its scheduler places jobs on nodes, runs them again when a node is lost, and drains."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import accelopt_profiling
from accelopt_profiling.hosts.connection import WorkerConnection
from accelopt_profiling.hosts.host import HostActivity, HostFacts, HostUnreachable, Progress
from accelopt_profiling.hosts.ray_bridge import parse_ask
from accelopt_profiling.jobs import Job, Runtime

_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0


class RayHost:
    """Runs jobs on the cluster at ``address`` ("ray://HOST:10001", "HOST:6379", or "auto" for one started here).

    ``ask`` is what each job asks for, such as "num_gpus=1" or "neuron_cores=1"; empty: one accelerator of the job's
    dialect where the cluster has any. ``python`` is the interpreter for kernels on the nodes; empty: Ray's own,
    and ``env`` variables for them. A job's messages arrive together at its end.

    Raises:
        ValueError: ``ask`` cannot be read.
    """

    remote = True

    def __init__(
        self,
        name: str,
        address: str,
        ask: str = "",
        python: str = "",
        env: dict[str, str] | None = None,
        patience: float = 90.0,
    ) -> None:
        try:
            parse_ask(ask)
        except ValueError:
            raise ValueError(f'hosts.{name}.ask must look like "num_gpus=1", not {ask!r}') from None
        self.name = name
        package = Path(accelopt_profiling.__file__).parent.parent
        start = f"import sys; sys.path.insert(0, {str(package)!r})"
        bridge = f"{start}; from accelopt_profiling.hosts.ray_bridge import main; main()"
        self._command = [sys.executable, "-c", bridge, address, ask, python, json.dumps(env or {})]
        self._patience = patience
        self._connection: WorkerConnection | None = None
        self._starting = asyncio.Lock()
        self._pause = self._next_try = 0.0

    async def _connected(self) -> WorkerConnection:
        async with self._starting:
            if self._connection is not None and self._connection.alive:
                return self._connection
            if self._connection is not None:
                await self._connection.close()
                self._connection = None
            wait = self._next_try - time.monotonic()
            if wait > 0:
                raise HostUnreachable(f"{self.name} cannot be reached (next try in {wait:.0f} s)", wait)
            connection = WorkerConnection(self.name, self._command, patience=self._patience)
            try:
                await connection.start()
            except HostUnreachable as error:
                self._pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, 2 * self._pause))
                self._next_try = time.monotonic() + self._pause
                raise HostUnreachable(str(error), self._pause) from None
            self._pause = self._next_try = 0.0
            self._connection = connection
            return connection

    async def facts(self) -> HostFacts:
        return (await self._connected()).facts

    async def warm(self, runtime: Runtime) -> None:
        """Nothing to do ahead: which node a job will run on is the scheduler's to say."""

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
