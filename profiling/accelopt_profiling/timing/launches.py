"""Time single launches: with device events through Triton's launch hooks, or from the record of torch's profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.timing.device import Event


@dataclass
class LaunchTimer:
    """Brackets every launch with two events.

    ``finish`` sums the launches of one run per kernel, in microseconds.

    ``event`` makes a timing event and ``synchronize`` waits for the device: torch's, or a test's. While a graph is
    captured (``capturing``), launches do not run, so they are not timed.
    """

    event: Callable[[], Event]
    synchronize: Callable[[], None]
    capturing: Callable[[], bool] = lambda: False
    _open: list[tuple[str, Event]] = field(default_factory=list)
    _closed: list[tuple[str, Event, Event]] = field(default_factory=list)

    def enter(self, metadata: Any) -> None:
        if self.capturing():
            return
        start = self.event()
        start.record()
        self._open.append((kernel_name(metadata), start))

    def exit(self, metadata: Any) -> None:
        if not self._open or self.capturing():
            return
        name, start = self._open.pop()
        end = self.event()
        end.record()
        self._closed.append((name, start, end))

    def finish(self) -> dict[str, float]:
        self.synchronize()
        totals: dict[str, float] = {}
        for name, start, end in self._closed:
            totals[name] = totals.get(name, 0.0) + 1000.0 * start.elapsed_time(end)
        self._closed.clear()
        return totals


def kernel_name(metadata: Any) -> str:
    """Return the kernel's name in the metadata that Triton hands to a launch hook (a lazy dictionary)."""
    values = metadata if isinstance(metadata, dict) else metadata.get()
    return str(values["name"])


_NO_KERNELS = ("memcpy", "memset", "context sync", "event sync", "stream sync", "stream wait", "device sync")


@dataclass(frozen=True)
class DeviceKernel:
    """One execution of one kernel on the device. ``stream`` is the tracer's number for its stream."""

    name: str
    us: float
    stream: int


def traced(torch: Any, call: Callable[[], Any]) -> list[DeviceKernel] | None:
    """Return what ran on the device during ``call``, kernels out of graphs and on other streams included.

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
    kernels = kernels_of(events)
    return kernels or None


def kernels_of(events: Iterable[Any]) -> list[DeviceKernel]:
    """Return the kernels among kineto's events: what ran on the device and is no copy, no fill and no
    annotation."""
    kernels = []
    for event in events:
        name = str(event.name())
        on_device = "cpu" not in str(event.device_type()).lower()
        if on_device and not event.is_user_annotation() and not name.lower().startswith(_NO_KERNELS):
            kernels.append(DeviceKernel(name, event.duration_ns() / 1000, int(event.device_resource_id())))
    return kernels


def same_set(runs: Iterable[Iterable[DeviceKernel]]) -> bool:
    """Check whether every run executed the same kernels the same number of times."""
    sets = {tuple(sorted(kernel.name for kernel in run)) for run in runs}
    return len(sets) <= 1
