"""Which kernels ran on the device, and how long each: CUPTI's or roctracer's record, through torch's profiler.

Not yet run on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

_NO_KERNELS = ("memcpy", "memset", "context sync", "event sync", "stream sync", "stream wait", "device sync")


@dataclass(frozen=True)
class DeviceKernel:
    """One execution of one kernel on the device; ``stream`` is the tracer's number for its stream."""

    name: str
    us: float
    stream: int


def traced(torch: Any, call: Callable[[], Any]) -> list[DeviceKernel] | None:
    """What ran on the device during ``call``, kernels out of graphs and on other streams included.

    None where the tracer is not there or may not be used (another profiler, no permission).
    """
    profiler = torch.profiler
    try:
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as recorded:
            call()
            torch.cuda.synchronize()
        events = recorded.profiler.kineto_results.events()
    except RuntimeError:
        return None
    found = kernels_of(events)
    return found or None


def kernels_of(events: Iterable[Any]) -> list[DeviceKernel]:
    """The kernels among kineto's events: what ran on the device and is no copy, no fill and no annotation."""
    found = []
    for event in events:
        name = str(event.name())
        on_device = "cpu" not in str(event.device_type()).lower()
        if on_device and not event.is_user_annotation() and not name.lower().startswith(_NO_KERNELS):
            found.append(DeviceKernel(name, event.duration_ns() / 1000, int(event.device_resource_id())))
    return found


def same_set(runs: Iterable[Iterable[DeviceKernel]]) -> bool:
    """Whether every run executed the same kernels the same number of times."""
    seen = {tuple(sorted(kernel.name for kernel in run)) for run in runs}
    return len(seen) <= 1
