"""Compares two results of one kernel."""

from __future__ import annotations

from dataclasses import dataclass

from accelopt_agent.speedup import Direction, direction
from accelopt_lsp.features.wording import times
from accelopt_profiling.measurement import KernelMeasurement


@dataclass(frozen=True)
class LatencyChange:
    """``ratio`` (1..) is the longer time over the shorter one."""

    direction: Direction
    ratio: float = 1.0

    def __str__(self) -> str:
        if self.direction == "same":
            return "same as last save" if times(self.ratio) == times(1.0) else "within noise of last save"
        return f"{times(self.ratio)} {self.direction} than last save"


def change(before: KernelMeasurement | None, now: KernelMeasurement) -> LatencyChange | None:
    """Return how ``now`` compares with ``before`` by the rule that offers follow too; None where they cannot
    be compared.

    Only like with like: the same target and host, known in the same way.
    """
    if before is None or (before.target, before.host) != (now.target, now.host):
        return None
    old, new = before.latency, now.latency
    if old.known is not new.known or not old.us or not new.us:
        return None
    found = direction(old, new, now.target)
    return None if found is None else LatencyChange(found, max(old.us, new.us) / min(old.us, new.us))
