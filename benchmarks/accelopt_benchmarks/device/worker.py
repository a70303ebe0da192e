"""Measures part ``worker``: the device inside a step, its cost, and its release when a worker is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from statistics import median
from typing import Any

from accelopt_benchmarks.device.part_result import PartResult, Table, attempt
from accelopt_benchmarks.device.session import OPENING, DeviceSession, opening_job, run
from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.worker.device_lock import DeviceLock

ROUNDS = 7
#: Opens the device, then stays on it.
_HOLDING = OPENING + "import time\ntime.sleep(120)\n"


async def worker(place: DeviceSession) -> PartResult:
    """Look at the worker's facts, open the device in steps, and kill a worker that holds it."""
    facts = place.facts
    device_rows = [[str(value) for value in (d.get("name"), d.get("driver_version"), d.get("memory.total"),
              d.get("compute_cap"))] for d in facts.devices]  # fmt: skip
    tables = [
        Table("Devices in the worker's first message", ["name", "driver", "MiB", "capability"], device_rows)
    ]
    rows = [
        GoalResult("devices that the worker lists", ">= 1", len(facts.devices), "", len(facts.devices) >= 1)
    ]
    isolated = facts.isolation
    note = isolated.note or "processes, network, files and memory are the step's own"
    rows.append(GoalResult("CUDA opens in a cell", "yes", float(place.usable and isolated.processes), "",
                    place.usable and isolated.processes, note))  # fmt: skip
    if not place.usable:
        rows.append(not_measured("overhead of a timed candidate", "told", "the device cannot be opened"))
        return PartResult("worker", rows, tables, place.trouble)
    lacks = list(place.trouble)
    costs = await attempt(_overhead(place), place.left(240))
    lacks += [costs] if isinstance(costs, str) else []
    rows += costs if not isinstance(costs, str) else []
    freed = await attempt(_freed(place), place.left(120))
    if isinstance(freed, str):
        rows.append(not_measured("device free after its worker is killed", "<= 5 s", freed))
    else:
        rows.append(GoalResult("device free after its worker is killed", "<= 5 s", freed, "s", freed <= 5,
                        "until another worker's step, warm, has opened it and answered"))  # fmt: skip
    return PartResult("worker", rows, tables, lacks)


async def _overhead(place: DeviceSession) -> list[GoalResult]:
    """Return a candidate that opens the device and adds up: as a step of a warm worker, and as a fresh
    process, in turns."""
    warm: list[float] = []
    fresh: list[float] = []
    await run(place.host, opening_job())
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await run(place.host, opening_job())
        warm.append(1e3 * (time.perf_counter() - began))
        began = time.perf_counter()
        await asyncio.to_thread(subprocess.run, [sys.executable, "-c", OPENING], check=True, timeout=120)
        fresh.append(1e3 * (time.perf_counter() - began))
    ratio = median(fresh) / median(warm)
    how = f"median of {ROUNDS}, {min(warm):.0f} to {max(warm):.0f} ms, the driver's own opening of the device in it"
    return [
        GoalResult("a step that opens the device, warm worker", "told", median(warm), "ms", None, how),
        GoalResult("below a fresh process that imports torch and opens it", "told", ratio, "x", None,
            f"median {median(fresh):.0f} ms, in turns"),
    ]  # fmt: skip


async def _freed(place: DeviceSession) -> float:
    """Kill a worker that holds the device. Seconds until another one has used it."""
    other, jobs = LocalHost(), list[asyncio.Task[Any]]()
    try:
        await run(place.host, opening_job())
        jobs.append(holding := asyncio.create_task(run(other, opening_job(_HOLDING))))
        while DeviceLock().holder() is None:
            if holding.done():
                await holding
            await asyncio.sleep(0.02)
        jobs.append(waiting := asyncio.create_task(run(place.host, opening_job())))
        await asyncio.sleep(1.0)  # so that it is really on the device
        assert other.process is not None
        began = time.perf_counter()
        os.kill(other.process, signal.SIGKILL)
        await waiting
        return time.perf_counter() - began
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        await other.close()
