"""A version of a kernel that was profiled: what is remembered of it when another one is shown."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.quantity import Quantity

#: So many versions of a kernel are remembered, the last ones.
REMEMBERED = 20


@dataclass(frozen=True)
class Commit:
    """A commit of the file; ``at`` in seconds since 1970."""

    id: str
    at: float
    subject: str


@dataclass(frozen=True)
class Version:
    """``moved`` are the bytes to and from the device's memory, None where nobody counted them.

    ``rest_hash`` is that of what in the file is no kernel, "" where the version was not profiled itself; ``at`` is when
    it was first profiled, in seconds since 1970.
    """

    content_hash: str
    latency: Latency
    target: str
    case: str
    bound: str = ""
    moved: Quantity | None = None
    accepted: bool = False
    rest_hash: str = ""
    at: float = field(default_factory=time.time, compare=False)

    @classmethod
    def of(cls, result: KernelMeasurement, accepted: bool = False, rest_hash: str = "") -> Version:
        return cls(
            result.content_hash,
            result.latency,
            result.target,
            case=result.case,
            bound=result.bound or "",
            moved=memory_traffic(result),
            accepted=accepted,
            rest_hash=rest_hash,
        )


def memory_traffic(result: KernelMeasurement) -> Quantity | None:
    """Return the bytes that a kernel moves to and from the device's memory; None where nobody counted them."""
    if (dram := result.quantities.get("dram_bytes")) is not None:
        return dram
    ways = [result.quantities.get(f"dma_{way}_bytes") for way in ("read", "write")]
    counted = [way for way in ways if way is not None and way.value is not None]
    return Quantity(sum(way.value or 0.0 for way in counted), counted[0].known, "bytes") if counted else None


def with_version(
    versions: tuple[Version, ...], result: KernelMeasurement, accepted: bool = False, rest_hash: str = ""
) -> tuple[Version, ...]:
    """Return the versions with that of ``result`` as the last one, if it has a time; growing results are of one
    version."""
    if result.latency.us is None:
        return versions
    version, rest = Version.of(result, accepted, rest_hash), versions
    last = versions[-1] if versions else None
    if (
        last
        and last.content_hash == result.content_hash
        and last.rest_hash in ("", rest_hash or last.rest_hash)
    ):
        rest_hash = rest_hash or last.rest_hash
        version = replace(version, accepted=accepted or last.accepted, rest_hash=rest_hash, at=last.at)
        rest = versions[:-1]
    return (*rest, version)[-REMEMBERED:]


def alike(versions: Sequence[Version], result: KernelMeasurement) -> list[Version]:
    """Return the versions of the target and the sizes of ``result``, which is one of them."""
    same = [v for v in versions if (v.target, v.case) == (result.target, result.case)]
    return same or [Version.of(result)]
