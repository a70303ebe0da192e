"""A machine over SSH: the same worker, sent as one archive over the system's ``ssh`` and run with that host's Python.

The system's client is used so that ``~/.ssh/config``, agents, jump hosts, certificates and known hosts just work.
Nothing is installed on the host and nothing of this machine's environment travels.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from collections.abc import AsyncGenerator, Sequence

from accelopt_profiling.hosts.archive import BOOTSTRAP, preamble
from accelopt_profiling.hosts.connection import WorkerConnection
from accelopt_profiling.hosts.host import HostActivity, HostFacts, HostUnreachable, Progress
from accelopt_profiling.jobs import Job, Runtime

_OPTIONS = (
    "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
    "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
)  # fmt: skip
_LONGEST_PAUSE = 60.0

#: What ssh or the shell says, and what to do about it.
_ADVICE = (
    ("host key verification failed", "Connect once with `ssh {0}` and check the key it shows."),
    ("remote host identification has changed", "Check why the host's key changed before you trust it again."),
    ("permission denied", "Check that `ssh {0}` logs in without asking for a password."),
    ("could not resolve", "Check the host's name in the settings."),
    ("connection refused", "Check that its ssh server runs and the port is right."),
    ("timed out", "Check that the host is up and reachable."),
    ("not found", "Name its Python with `python` in [hosts.{1}]."),
    ("no such file", "Name its Python with `python` in [hosts.{1}]."),
)


class SshHost:
    """Runs jobs on ``destination`` (what one would type after ``ssh``). One connection, opened when first needed and
    again after it was lost, with a pause between failed tries that grows from ``first_pause`` to 60 seconds.
    ``patience`` is how many seconds a worker may take for its first words: a slow link carries the archive before.

    Raises:
        ValueError: the destination looks like an option.
    """

    remote = True

    def __init__(
        self,
        name: str,
        destination: str,
        python: str = "python3",
        options: Sequence[str] = (),
        ssh: str = "ssh",
        patience: float = 60.0,
        first_pause: float = 2.0,
    ) -> None:
        if not destination or destination.startswith("-"):
            raise ValueError(f"hosts.{name}.ssh must name a machine, not {destination!r}")
        self.name, self._destination = name, destination
        remote = f"exec {python} -c {shlex.quote(BOOTSTRAP)}"
        self._command = [ssh, *_OPTIONS, *options, "--", destination, remote]
        self._connection: WorkerConnection | None = None
        self._starting = asyncio.Lock()
        self._patience, self._first_pause = patience, first_pause
        self._pause = 0.0
        self._next_try = 0.0
        self._failure = ""

    async def _connected(self) -> WorkerConnection:
        async with self._starting:
            if self._connection is not None and self._connection.alive:
                return self._connection
            if self._connection is not None:
                await self._connection.close()
                self._connection = None
            wait = self._next_try - time.monotonic()
            if wait > 0:
                raise HostUnreachable(f"{self._failure} (next try in {wait:.0f} s)", wait)
            connection = WorkerConnection(self.name, self._command, preamble(), self._patience)
            try:
                await connection.start()
            except HostUnreachable as error:
                self._pause = min(_LONGEST_PAUSE, max(self._first_pause, 2 * self._pause))
                self._next_try = time.monotonic() + self._pause
                self._failure = self._advised(str(error))
                raise HostUnreachable(self._failure, self._pause) from None
            self._pause = self._next_try = 0.0
            self._connection = connection
            return connection

    def _advised(self, message: str) -> str:
        low = message.lower()
        for sign, advice in _ADVICE:
            if sign in low:
                return f"{message} {advice.format(self._destination, self.name)}"
        return message

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
