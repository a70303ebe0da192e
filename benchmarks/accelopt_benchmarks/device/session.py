"""Opens the worker and the GPU of this machine for the measurements, and keeps the time that is left."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from typing import Any

from accelopt_benchmarks.device.part_result import attempt
from accelopt_profiling.hosts.host import HostFacts
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import Job, JobFiles, Step
from accelopt_profiling.measurement_builder import target_of_device

#: Opens the device as a step that times does, and says what it is.
OPENING = """
import torch
x = torch.ones(1 << 20, device="cuda")
torch.cuda.synchronize()
NAME = torch.cuda.get_device_name()
assert float(x.sum()) == 1 << 20
"""


def opening_job(text: str = OPENING) -> Job:
    """Return a job whose one step imports ``text`` in a process with torch that has the device."""
    return Job(
        JobFiles("opening.py", {"opening.py": text}, name="opening.py"), [Step("load", "torch", device=True)]
    )


@dataclass
class DeviceSession:
    """``target`` is the one that the device's name belongs to, ``target_known`` whether there is one. ``trouble`` says
    why steps run without namespaces of their own, or why nothing runs on the device at all (``usable`` is False then).
    """

    host: LocalHost
    facts: HostFacts
    ends: float
    device: str = ""
    target: str = "h100"
    target_known: bool = False
    usable: bool = True
    trouble: list[str] = field(default_factory=list)

    def left(self, most: float = 600.0) -> float:
        """Return the seconds that the next piece of work may take."""
        return max(0.0, min(most, self.ends - time.monotonic()))

    @property
    def toolchain(self) -> dict[str, str]:
        driver = next((str(d.get("driver_version", "")) for d in self.facts.devices), "")
        return {"python": self.facts.python, **self.facts.versions, **({"driver": driver} if driver else {})}


async def run(host: LocalHost, job: Job) -> Any:
    """Return the value of a job's last step. Raises what ``Host.run`` does."""
    value: Any = None
    async with contextlib.aclosing(host.run(job)) as messages:
        async for message in messages:
            if message.final:
                value = message.value
    return value


async def open_session(seconds: float) -> DeviceSession:
    """Start a worker here and try its device.

    Where namespaces keep CUDA away, go on without them and say so.

    Raises:
        HostUnreachableError: the worker cannot be started.
    """
    ends = time.monotonic() + seconds
    place = await _tried(LocalHost(), ends)
    if place.usable or not place.facts.isolation.processes:
        return place
    await place.host.close()
    again = await _tried(LocalHost(environment={**os.environ, "ACCELOPT_NAMESPACES": "0"}), ends)
    again.trouble[:0] = place.trouble
    return again


async def _tried(host: LocalHost, ends: float) -> DeviceSession:
    """Return the worker with what it says of its device. ``usable`` only if a step has opened that."""
    try:
        facts = await host.facts()
        device = str(facts.devices[0].get("name", "GPU")) if facts.devices else ""
        target = target_of_device(device)
        place = DeviceSession(host, facts, ends, device, target or "h100", target is not None)
        opened = await attempt(run(host, opening_job()), place.left(180))
    except BaseException:
        await host.close()
        raise
    if isinstance(opened, str):
        where = "in a cell" if facts.isolation.processes else "without namespaces"
        place.usable, place.trouble = False, [f"The device cannot be opened {where}: {opened}"]
    return place
