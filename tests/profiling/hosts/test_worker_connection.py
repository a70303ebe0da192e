"""A worker that hangs, and many jobs at once on one connection."""

import asyncio
import contextlib
import os
import signal
import sys
import time

import pytest
from support.processes import is_running

from accelopt_profiling.hosts.host import HostUnreachableError, JobFailedError, JobInterruptedError
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.hosts.worker_connection import WorkerConnection
from accelopt_profiling.jobs import Job, JobFiles, Step

WORKER = [sys.executable, "-c", "from accelopt_profiling.worker.__main__ import main; main()"]


def job(text: str) -> Job:
    return Job(JobFiles("k.py", {"k.py": text}, name="k.py"), [Step("load", "numpy")])


async def messages(connection: WorkerConnection, text: str):
    async with contextlib.aclosing(connection.run(job(text))) as running:
        return [message async for message in running]


async def runs(connection: WorkerConnection) -> bool:
    """Return whether this worker has a job now."""
    workers = (await connection.activity()).workers
    return any(worker.pid == connection.process and worker.jobs for worker in workers)


@pytest.mark.slow
async def test_a_worker_that_hangs_while_a_job_runs_is_given_up():
    connection = WorkerConnection("local", WORKER, patience=60.0, silence=0.2)
    await connection.start()
    task = asyncio.create_task(messages(connection, "import time\ntime.sleep(600)"))
    end = time.monotonic() + 60
    while not await runs(connection) and time.monotonic() < end:
        pass  # each question is a wait
    os.kill(connection.process, signal.SIGSTOP)
    connection._patience = 0.5  # no longer than it takes to see that nothing comes
    with pytest.raises(JobInterruptedError, match=r"no answer within 0\.5 s while a job ran"):
        await task
    assert not connection.alive
    await connection.close()


@pytest.mark.slow
async def test_a_long_job_is_asked_about_and_goes_on():
    connection = WorkerConnection("local", WORKER, patience=60.0, silence=0.1)
    await connection.start()
    answers = await messages(connection, "import time\ntime.sleep(0.6)\nx = 1")
    assert [m.final for m in answers] == [True]
    await connection.close()


@pytest.mark.slow
async def test_many_jobs_at_once_get_their_own_answers():
    connection = WorkerConnection("local", WORKER, patience=60.0)
    await connection.start()
    answers = await asyncio.gather(*(messages(connection, f"x{number} = 1") for number in range(30)))
    assert [
        f"x{number}" in job_messages[-1].value["names"] for number, job_messages in enumerate(answers)
    ] == [True] * 30
    await connection.close()


@pytest.mark.slow
async def test_a_host_that_takes_nothing_of_what_is_sent_is_given_up():
    connection = WorkerConnection("box", ["sleep", "1.5"], b"x" * (4 << 20), patience=0.1)
    with pytest.raises(HostUnreachableError, match=r"box did not answer within 0\.1 s"):
        await connection.start()


async def test_a_host_that_is_closed_while_it_starts_leaves_no_worker():
    host = LocalHost()
    task = asyncio.create_task(host.facts())
    while (worker := host.process) is None:
        await asyncio.wait([task], timeout=0.01)
    await host.close()
    with pytest.raises(HostUnreachableError, match="closed"):
        await task
    assert host.process is None
    assert not is_running(worker)


#: What a host may answer, which belongs to no job of ours, or has no shape that we know.
STRANGE = ['{"type": "hello", "protocol": 1, "memory_bytes": 1e999}',
           '{"type": "hello", "protocol": 1, "versions": 3}',
           '{"type": "hello", "protocol": 1, "resources": {"gpu": "many"}}',
           '{"type": "hello", "protocol": 1, "devices": 7}',
           '{"type": "hello", "protocol": [[1]]}', '{"type": "refused", "message": "no \\u001b[2J room"}']  # fmt: skip


@pytest.mark.parametrize("hello", STRANGE)
async def test_a_strange_introduction_is_refused_in_plain_words(hello):
    code = f"print('@accelopt/1 %d\\n%s' % (len({hello!r}), {hello!r}), flush=True); input()"
    connection = WorkerConnection("box", [sys.executable, "-c", code])
    with pytest.raises(HostUnreachableError) as refused:
        await connection.start()
    assert str(refused.value).isprintable()


async def test_strange_answers_about_a_job_are_passed_over():
    hello, answers = '{"type": "hello", "protocol": 1}', ['{"id": "1"}', '{"type": [], "id": "1", "last": true}',
        '{"type": "news", "id": "1", "last": true}', '{"type": "partial", "id": "1", "last": true}',
        '{"type": "failed", "id": "1", "error": []}']  # fmt: skip
    code = (
        "import sys\n"
        "def say(text): print('@accelopt/1 %d\\n%s' % (len(text), text), flush=True)\n"
        f"say({hello!r})\nsys.stdin.readline()\n"
        f"for answer in {answers!r}: say(answer)\nsys.stdin.read()"
    )
    connection = WorkerConnection("box", [sys.executable, "-c", code])
    await connection.start()
    with pytest.raises(JobFailedError, match="cannot be read"):
        await messages(connection, "x = 1")
    await connection.close()


@pytest.mark.parametrize(
    ("python", "message"),
    [
        (None, r"local: .*python could not be started: .*No such file"),
        ((3, 8), r"it is Python 3\.8; the worker needs 3\.10 or newer"),
    ],
)
async def test_a_python_that_cannot_be_used_here_says_which_setting_names_another(python, message, tmp_path):
    script = tmp_path / "python"
    if python is not None:
        script.write_text(
            f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.version_info = {python}; $2"\n'
        )
        script.chmod(0o755)
    with pytest.raises(
        HostUnreachableError,
        match=message + r".* Name a Python 3\.10 or newer that has NumPy with the setting `python`",
    ):
        await LocalHost(str(script)).facts()
