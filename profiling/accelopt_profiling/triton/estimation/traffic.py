"""Estimate the bytes that a launch moves between DRAM, L2 and the multiprocessors from a sample of its programs.

Three things make DRAM traffic differ from what the programs ask for: programs read the same data (counted once while
it stays in L2), a program reads its data again (once more from DRAM where the working sets of all resident programs
do not fit in L2), and a wave of programs evicts what the next wave shares with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.interpreter.counting import LaunchCounts

SECTOR = 32  # bytes


@dataclass(frozen=True)
class Traffic:
    """Bytes of the whole launch.

    ``requested`` is what the multiprocessors ask L2 for, in whole sectors; ``useful`` the lanes' own bytes;
    ``compulsory`` what must cross the DRAM interface once. ``dram`` is the expected DRAM traffic,
    ``dram_low`` .. ``dram_high`` its range: everything shared stays in L2 .. nothing does. ``passes`` is how often
    a program reads the same data, the largest over the tensors that do not stay in L2.
    """

    requested: float
    useful: float
    compulsory: float
    dram: float
    dram_low: float
    dram_high: float
    passes: float = 1.0


@dataclass(frozen=True)
class _Tensor:
    """Sectors of one tensor in the whole launch: requested, distinct if programs shared none, and its size."""

    requested: float
    distinct: float
    size: float

    @property
    def once(self) -> float:
        return min(self.distinct, self.size)

    @property
    def passes(self) -> float:
        return self.requested / self.distinct if self.distinct else 1.0


def traffic(counts: LaunchCounts, target: GpuTarget, resident_programs: int) -> Traffic:
    """Scale the sample's sectors to the launch and pass them through L2.

    ``resident_programs`` is how many programs run at the same time on the whole device. The share of L2 that a
    working set may fill is the target's ``model.l2_share``.
    """
    if counts.sampled == 0 or counts.programs == 0:
        return Traffic(0, 0, 0, 0, 0, 0)
    scale = counts.programs / counts.sampled
    lines = counts.lines.values()
    requested = scale * SECTOR * sum(line.load_sectors + line.store_sectors for line in lines)
    useful = scale * sum(line.load_bytes + line.store_bytes for line in lines)
    loads = _tensors(counts, counts.unique_load_sectors, counts.load_sectors, scale)
    stores = _tensors(counts, counts.unique_store_sectors, counts.store_sectors, scale)
    waves = max(1.0, counts.programs / max(1, resident_programs))
    room = target["model.l2_share"] * target["l2_bytes"] / SECTOR
    low, high, expected = _loads_from_dram(loads, waves, room)
    written = sum(tensor.once for tensor in stores)
    compulsory = sum(tensor.once for tensor in loads) + written
    return Traffic(
        requested,
        useful,
        SECTOR * compulsory,
        SECTOR * (expected + written),
        SECTOR * (low + written),
        SECTOR * (high + written),
        max((t.passes for t in loads if t.size > room), default=1.0),
    )


def _tensors(
    counts: LaunchCounts, unique: dict[str, int], asked: dict[str, int], scale: float
) -> list[_Tensor]:
    found = []
    for name, sectors in unique.items():
        size = math.ceil(counts.tensor_bytes.get(name, 0) / SECTOR) or math.inf
        distinct = scale * sectors
        found.append(_Tensor(max(distinct, scale * asked.get(name, sectors)), distinct, size))
    return found


def _loads_from_dram(loads: list[_Tensor], waves: float, room: float) -> tuple[float, float, float]:
    """Sectors read from DRAM: least, most, expected. ``room`` is the part of L2 (in sectors) data stays in.

    A tensor's sectors are asked for ``passes`` times by one program, and by ``distinct / size`` programs. The
    smallest working sets keep their place in L2: they are used most often for their size.
    """
    low = high = expected = 0.0
    for tensor in sorted(loads, key=lambda t: min(t.distinct / waves, t.size)):
        per_wave = min(tensor.distinct / waves, tensor.size)
        each_wave_anew = max(tensor.once, min(waves * per_wave, tensor.distinct))
        low += tensor.once
        high += tensor.passes * each_wave_anew
        if tensor.size <= room:
            expected += tensor.once
        else:  # how much of it a later wave still finds depends on the order of programs
            again = tensor.passes if per_wave > room else 1.0
            expected += again * math.sqrt(tensor.once * each_wave_anew)
        room = max(0.0, room - per_wave)
    return low, high, expected
