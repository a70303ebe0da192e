"""Compare two results of one kernel and decide whether the difference is noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.quantity import Known

#: Two estimates come from one model and share its error, so their ratio is far better known than either. Less than
#: this share (0..1) counts as the same: it is below what rounding in the model's inputs explains.
ESTIMATE_NOISE = 0.01

Direction = Literal["faster", "slower", "same"]


@dataclass(frozen=True)
class LatencyChange:
    """``share`` (0..) is by how much of the older time the newer one is shorter or longer."""

    direction: Direction
    share: float = 0.0

    def __str__(self) -> str:
        if self.direction == "same":
            return "same as last save"
        percent = self.share * 100
        digits = f"{percent:.0f}" if percent >= 10 else f"{percent:.1f}"
        return f"{digits} % {self.direction} than last save"


def change(before: KernelMeasurement | None, now: KernelMeasurement) -> LatencyChange | None:
    """How ``now`` compares with ``before``; None where they cannot be compared.

    Only like with like: the same target and host, known in the same way. Measured times whose confidence intervals
    overlap are the same; estimates are the same within ``ESTIMATE_NOISE``.
    """
    if before is None or (before.target, before.host) != (now.target, now.host):
        return None
    old, new = before.latency, now.latency
    if old.us is None or new.us is None or old.known is not new.known or old.us <= 0:
        return None
    share = (new.us - old.us) / old.us
    if old.known is Known.MEASURED and (overlap := _overlap(old, new)) is not None:
        if overlap:
            return LatencyChange("same")
    elif abs(share) < ESTIMATE_NOISE:
        return LatencyChange("same")
    return LatencyChange("slower" if share > 0 else "faster", abs(share))


def _overlap(old: Latency, new: Latency) -> bool | None:
    """Whether the two intervals overlap; None where one has none."""
    if old.low_us is None or old.high_us is None or new.low_us is None or new.high_us is None:
        return None
    return new.low_us <= old.high_us and old.low_us <= new.high_us
