"""Run the jobs of a host again that were interrupted by the loss of the connection or the worker."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import AsyncGenerator

from accelopt_profiling.hosts.host import (
    Host,
    HostActivity,
    HostFacts,
    HostUnreachableError,
    JobFailedError,
    JobInterruptedError,
    JobMessage,
)
from accelopt_profiling.jobs import Job, Runtime, StepError

_log = logging.getLogger(__name__)


class RetryingHost:
    """A host that runs every job of ``host`` until it has one result or one error.

    An interrupted job is reported in the log and run again from its first step, ``tries`` times in all; ``JobMessage``
    tells the ``attempt``, and messages of a later attempt replace those of an earlier one. A job has one
    last message or one error, never two: an attempt that was cut off can no longer answer. Between attempts the host
    has ``patience`` seconds to be reached again, and is tried no more often than it asks for.
    """

    def __init__(self, host: Host, tries: int = 3, patience: float = 180.0) -> None:
        self._host, self._tries, self._patience = host, tries, patience
        self.name, self.remote = host.name, host.remote

    async def facts(self) -> HostFacts:
        return await self._host.facts()

    async def run(self, job: Job) -> AsyncGenerator[JobMessage, None]:
        for attempt in range(1, self._tries + 1):
            try:
                async with contextlib.aclosing(self._host.run(job)) as messages:
                    async for progress in messages:
                        yield dataclasses.replace(progress, attempt=attempt)
                return
            except JobInterruptedError as interruption:
                _log.warning("%s Job of %s, attempt %d.", interruption, job.source.name, attempt)
                if attempt < self._tries:
                    await self._reconnect()
        steps = ", ".join(step.name for step in job.steps)
        message = f"The worker on {self.name} was lost {self._tries} times while it ran this ({steps})."
        raise JobFailedError("", StepError("crashed", f"{message} It is not run again."))

    async def _reconnect(self) -> None:
        """Connect again, waiting as long as the host asks between tries. Raises HostUnreachableError."""
        end = time.monotonic() + self._patience
        while True:
            try:
                await self._host.facts()
                return
            except HostUnreachableError as error:
                if error.again_in is None or time.monotonic() + error.again_in > end:
                    raise
                await asyncio.sleep(error.again_in)

    async def preload(self, runtime: Runtime) -> None:
        await self._host.preload(runtime)

    async def activity(self) -> HostActivity:
        return await self._host.activity()

    async def close(self) -> None:
        await self._host.close()
