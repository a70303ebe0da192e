"""Jobs for a worker that load a file, and hosts that are closed in the end."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from accelopt_profiling.hosts.host import Host, JobMessage
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Job, JobFiles, Limits, Step


def job(
    text: str, seconds: float = 60.0, background: bool = False, imports: Sequence[str] = (), steps: int = 1,
    device: bool = False, name: str = "k.py", **limits: int,
) -> Job:  # fmt: skip
    """Return a job that loads ``text`` in each of its ``steps``."""
    source = JobFiles("k.py", {"k.py": text}, list(imports), name=name)
    step = Step("load", "numpy", limits=Limits(seconds=seconds, **limits), device=device)
    return Job(source, [step] * steps, background)


async def answers(host: Host, work: Job) -> list[JobMessage]:
    async with contextlib.aclosing(host.run(work)) as messages:
        return [message async for message in messages]


async def answer(host: Host, work: Job) -> Any:
    return (await answers(host, work))[-1].value


@contextlib.asynccontextmanager
async def local_host(*arguments: Any, **keywords: Any) -> AsyncIterator[LocalHost]:
    host = LocalHost(*arguments, **keywords)
    try:
        yield host
    finally:
        await host.close()
