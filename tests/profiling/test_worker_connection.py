"""A worker that hangs, and many jobs at once on one connection."""

import asyncio
import contextlib
import os
import signal
import sys
import time

import pytest

from accelopt_profiling.hosts.connection import WorkerConnection
from accelopt_profiling.hosts.host import JobInterrupted
from accelopt_profiling.jobs import Job, Source, Step

WORKER = [sys.executable, "-c", "from accelopt_profiling.worker.__main__ import main; main()"]


def job(text: str) -> Job:
    return Job(Source("k.py", {"k.py": text}, name="k.py"), [Step("load", "numpy")])


async def messages(connection: WorkerConnection, text: str):
    async with contextlib.aclosing(connection.run(job(text))) as running:
        return [message async for message in running]


async def runs(connection: WorkerConnection) -> bool:
    """Whether this worker has a job now."""
    workers = (await connection.activity()).workers
    return any(worker.pid == connection.process and worker.jobs for worker in workers)


async def test_a_worker_that_hangs_while_a_job_runs_is_given_up():
    connection = WorkerConnection("local", WORKER, patience=20.0, silence=0.2)
    await connection.start()
    connection._patience = 0.5
    task = asyncio.create_task(messages(connection, "import time\ntime.sleep(60)"))
    end = time.monotonic() + 20
    while not await runs(connection) and time.monotonic() < end:
        pass  # each question is a wait
    os.kill(connection.process, signal.SIGSTOP)
    with pytest.raises(JobInterrupted, match=r"no answer within 0\.5 s while a job ran"):
        await task
    assert not connection.alive
    await connection.close()


async def test_a_long_job_is_asked_about_and_goes_on():
    connection = WorkerConnection("local", WORKER, patience=20.0, silence=0.1)
    await connection.start()
    found = await messages(connection, "import time\ntime.sleep(0.6)\nx = 1")
    assert [m.final for m in found] == [True]
    await connection.close()


async def test_many_jobs_at_once_get_their_own_answers():
    connection = WorkerConnection("local", WORKER, patience=60.0)
    await connection.start()
    found = await asyncio.gather(*(messages(connection, f"x{number} = 1") for number in range(30)))
    assert [f"x{number}" in said[-1].value["names"] for number, said in enumerate(found)] == [True] * 30
    await connection.close()
