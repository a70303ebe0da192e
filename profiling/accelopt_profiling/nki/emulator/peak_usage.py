"""Finds the peak usage of SBUF, and the tiles that are alive then: from their first instruction to their last."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelopt_profiling.measurement import Finding
from accelopt_profiling.nki.data.instruction import BlockInfo, TracedInstruction
from accelopt_profiling.nki.data.memory_space import CoreLimits, MemorySpace

#: Holders that a message names.
_NAMED = 4


@dataclass(frozen=True)
class Holder:
    """The tiles made on one line under one name that are alive at the peak; ``bytes`` per partition, together."""

    name: str
    line: int
    tiles: int
    bytes: int


@dataclass(frozen=True)
class PeakUsage:
    """The most bytes per partition alive at once, the line of the instruction where that is, and what they are."""

    peak: int
    line: int
    holders: tuple[Holder, ...]


def peak_usage(instructions: list[TracedInstruction], memory: MemorySpace = MemorySpace.SBUF) -> PeakUsage:
    """Return the peak of ``memory``; holders largest first. Nothing alive gives a peak of 0 on line 0."""
    begun: dict[BlockInfo, int] = {}
    ended: dict[BlockInfo, int] = {}
    for number, instruction in enumerate(instructions):
        for place, _ in instruction.reads:
            if place.memory is memory:
                begun.setdefault(place, number)
                ended[place] = number
        for place, _ in instruction.writes:
            if place.memory is memory:
                begun.setdefault(place, number)
                ended[place] = number
    if not begun:
        return PeakUsage(0, 0, ())
    change = [0] * (len(instructions) + 1)
    for place, first in begun.items():
        change[first] += place.free_bytes
        change[ended[place] + 1] -= place.free_bytes
    alive = np.cumsum(np.array(change[:-1], dtype=np.int64))
    at = int(alive.argmax())
    held: dict[tuple[str, int], list[int]] = {}
    for place, first in begun.items():
        if first <= at <= ended[place]:
            held.setdefault((place.name, place.line), []).append(place.free_bytes)
    holders = [Holder(name, line, len(sizes), sum(sizes)) for (name, line), sizes in held.items()]
    holders.sort(key=lambda h: (-h.bytes, h.line))
    return PeakUsage(int(alive[at]), instructions[at].line, tuple(holders))


def overflow(instructions: list[TracedInstruction], limits: CoreLimits) -> Finding | None:
    """Return a warning if more is alive in a core's SBUF at once than it holds: the compiler then writes tiles out to
    HBM and reads them back, in both dialects (AWS's "The Trainium Memory Hierarchy", 2025-12-02), which costs time.
    """
    apart = [[i for i in instructions if i.core == core] for core in {i.core for i in instructions}]
    usage = max(map(peak_usage, apart), key=lambda u: u.peak, default=PeakUsage(0, 0, ()))
    if usage.peak <= limits.sbuf_bytes:
        return None
    parts = [_held(holder) for holder in usage.holders[:_NAMED]]
    rest = len(usage.holders) - _NAMED
    if rest > 0:
        parts.append(f"{rest} more")
    message = (
        f"{_bytes(usage.peak)} per partition are alive in SBUF here, which has {_bytes(limits.sbuf_bytes)}: the "
        "compiler has to write tiles out and read them back, or load them again. Alive are "
        f"{', '.join(parts)}. Use tiles sooner, or make them smaller."
    )
    return Finding("capacity", usage.line, "warning", message)


def _held(holder: Holder) -> str:
    tiles = f"{holder.tiles} {'tile' if holder.tiles == 1 else 'tiles'}"
    of = f" of {holder.name}" if holder.name else ""
    return f"{_bytes(holder.bytes)} in {tiles}{of} (line {holder.line})"


def _bytes(size: int) -> str:
    return f"{size / 1024:.0f} KiB" if size >= 10240 else f"{size:,} B"
