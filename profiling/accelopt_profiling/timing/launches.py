"""Time each launch of a Triton kernel on a GPU with device events, through Triton's own launch hooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.timing.device import Event


@dataclass
class LaunchTimer:
    """Brackets every launch with two events; ``finish`` sums the launches of one run per kernel, in microseconds.

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
    """The kernel's name in the metadata that Triton hands to a launch hook (a lazy dictionary)."""
    values = metadata if isinstance(metadata, dict) else metadata.get()
    return str(values["name"])
