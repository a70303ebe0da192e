"""The lock of a host's devices and the activity that workers report, with real worker processes."""

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time

import pytest
from support.waiting import until
from support.worker_jobs import answer, job

from accelopt_profiling.hosts.host import JobInterruptedError
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.worker.device_lock import DeviceLock

#: Names that no other run of the tests gives to what holds or awaits the devices of this machine, nor an earlier test.
_NUMBERS = itertools.count()


def own_name(what: str) -> str:
    return f"{what}-{os.getpid()}-{next(_NUMBERS)}.py"


@pytest.fixture
async def two():
    hosts = LocalHost(), LocalHost()
    yield hosts
    for host in hosts:
        await host.close()


def test_the_lock_is_free_again_when_its_holder_is_killed(tmp_path):
    code = (
        "import time, pathlib\nfrom accelopt_profiling.worker.device_lock import DeviceLock\n"
        f"lock = DeviceLock(pathlib.Path({str(tmp_path)!r}))\nassert lock.try_acquire('theirs')\n"
        "print('taken', flush=True)\ntime.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"taken\n"
    lock = DeviceLock(tmp_path)
    assert not lock.try_acquire("ours")
    assert lock.holder()["what"] == "theirs"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    assert lock.holder() is None
    assert lock.try_acquire("ours")
    assert DeviceLock(tmp_path).holder() == {**lock.holder(), "pid": os.getpid(), "what": "ours"}
    lock.release()


@pytest.mark.slow
async def test_device_steps_exclude_each_other_across_workers(two):
    text = "import time\nbegin = time.time()\ntime.sleep(0.2)\nraise ValueError([begin, time.time()])"

    async def span(host):
        work = job(text, device=True)
        with pytest.raises(Exception, match="ValueError") as failed:
            await answer(host, work)
        return tuple(float(n) for n in str(failed.value).partition("[")[2].rstrip("]").split(","))

    await asyncio.gather(*(answer(host, job("x = 1", device=True)) for host in two))  # warm
    exclusive = sorted(await asyncio.gather(span(two[0]), span(two[1]), span(two[0])))
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(exclusive))


@pytest.mark.slow
async def test_a_step_without_the_device_does_not_wait_for_it(two):
    holds = own_name("holds")
    holding = asyncio.create_task(
        answer(two[0], job("import time\ntime.sleep(600)", device=True, name=holds))
    )
    await until(lambda: held_by(holds))
    for host in two:
        result = await answer(host, job("x = 1"))
        assert "x" in result["names"]
    assert not holding.done()
    holding.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await holding


@pytest.mark.slow
async def test_a_killed_worker_frees_the_device(two):
    mine = own_name("mine")
    task = asyncio.create_task(answer(two[0], job("import time\ntime.sleep(600)", device=True, name=mine)))
    await until(lambda: held_by(mine))
    waiting = asyncio.create_task(answer(two[1], job("x = 1", device=True)))
    two[0]._connection._process.kill()
    with pytest.raises(JobInterruptedError):
        await task
    assert "x" in (await waiting)["names"]


@pytest.mark.slow
async def test_a_job_that_waits_for_the_device_can_be_cancelled(two):
    holds, waits = own_name("holds"), own_name("waits")
    holding = asyncio.create_task(
        answer(two[0], job("import time\ntime.sleep(600)", device=True, name=holds))
    )
    await until(lambda: held_by(holds))
    waiting = asyncio.create_task(answer(two[1], job("x = 1", device=True, name=waits)))
    await shows(two[1], lambda running: any(job.device == "waits" for job in running))
    states = {(job.kernel, job.step, job.device) for job in await jobs(two[0])}
    assert {(holds, "load", "holds"), (waits, "load", "waits")} <= states
    assert (await two[0].activity()).device == holds
    for task in (waiting, holding):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await shows(two[1], lambda running: not [j for j in running if j.kernel in (holds, waits)])
    assert "x" in (await answer(two[1], job("x = 1", device=True)))["names"]


def held_by(name: str) -> bool:
    return (DeviceLock().holder() or {}).get("what") == name


async def shows(host: LocalHost, condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition(await jobs(host)):
            return
    raise AssertionError("it is not shown")


async def jobs(host: LocalHost):
    return [job for worker in (await host.activity()).workers for job in worker.jobs]
