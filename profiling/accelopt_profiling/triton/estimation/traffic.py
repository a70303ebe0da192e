"""Estimate the bytes that a launch moves between DRAM, L2 and the multiprocessors from a sample of its programs.

Each cache answers what it still holds. L1 keeps the data of the programs on one multiprocessor where those fit beside
their shared memory: a program's second read, and what neighbouring programs share, go no further. On the way to L2
requests of neighbouring multiprocessors for the same data are merged. L2 keeps what all resident programs share; a
wave of programs evicts what the next wave shares with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.estimation.residency import LaunchResidency
from accelopt_profiling.triton.interpreter.counting import LaunchCounts

SECTOR = 32  # bytes


@dataclass(frozen=True)
class Traffic:
    """Bytes of the whole launch.

    ``requested`` is what programs ask for, in whole sectors; ``past_l1`` what L1 passes on, ``from_l2`` what of it L2
    has to serve; ``compulsory`` what must cross the DRAM interface once, ``compulsory_loads`` the part that is read.
    ``dram`` is the expected DRAM traffic, ``dram_low`` .. ``dram_high`` its range: everything shared stays in L2 ..
    nothing does.
    """

    requested: float
    past_l1: float
    from_l2: float
    compulsory: float
    compulsory_loads: float
    dram: float
    dram_low: float
    dram_high: float


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


def traffic(counts: LaunchCounts, target: GpuTarget, residency: LaunchResidency) -> Traffic:
    """Scale the sample's sectors to the launch and pass them through L1 and L2.

    The share of L2 that a working set may fill is the target's ``model.l2_share``.
    """
    if counts.sampled == 0 or counts.programs == 0:
        return Traffic(0, 0, from_l2=0, compulsory=0, compulsory_loads=0, dram=0, dram_low=0, dram_high=0)
    scale = counts.programs / counts.sampled
    lines = counts.lines.values()
    stored = scale * SECTOR * sum(line.store_sectors for line in lines)
    load_bytes = scale * SECTOR * sum(line.load_sectors for line in lines)
    missed, merged = _past_l1(counts, target, residency)
    loads = _tensors(
        counts, counts.unique_load_sectors, requests=counts.load_sectors, scale=scale, own=counts.own_sectors
    )
    stores = _tensors(counts, counts.unique_store_sectors, requests=counts.store_sectors, scale=scale, own={})
    waves = max(1.0, counts.programs / max(1, residency.programs))
    room = target["model.l2_share"] * target["l2_bytes"] / SECTOR
    low, high, expected = _loads_from_dram(loads, waves, room)
    read = sum(tensor.once for tensor in loads)
    written = sum(tensor.once for tensor in stores)
    return Traffic(
        load_bytes + stored,
        SECTOR * scale * missed + stored,
        from_l2=SECTOR * scale * merged + stored,
        compulsory=SECTOR * (read + written),
        compulsory_loads=SECTOR * read,
        dram=SECTOR * (expected + written),
        dram_low=SECTOR * (low + written),
        dram_high=SECTOR * (high + written),
    )


def _past_l1(counts: LaunchCounts, target: GpuTarget, residency: LaunchResidency) -> tuple[float, float]:
    """Return the sectors of the sample that go past L1, and what is left of them after requests are merged.

    A program's second read of a sector hits L1 where the working sets of the programs on one multiprocessor fit. So
    does what several programs read, all but the first time on each multiprocessor. Async copies go past L1.
    """
    footprint = SECTOR * sum(counts.program_sectors.values()) / counts.sampled * residency.each
    fits = min(1.0, residency.l1_bytes / footprint) if footprint else 1.0
    first_reads = min(1.0, target["multiprocessors"] / counts.programs)
    together = min(target["l2_merged_requests"], residency.programs)
    missed = merged = 0.0
    for name, requests in counts.load_sectors.items():
        rest = float(requests)
        distinct = counts.unique_load_sectors.get(name, requests)
        if name not in residency.past_l1:
            own = min(requests, counts.program_sectors.get(name, requests))
            rest -= fits * (requests - own + max(0, own - distinct) * (1 - first_reads))
        size = counts.tensor_bytes.get(name, 0) / SECTOR or math.inf
        readers = max(1.0, distinct * counts.programs / counts.sampled / size)
        missed += rest
        merged += rest / min(together, readers)
    return missed, merged


def _tensors(
    counts: LaunchCounts, unique: dict[str, int], requests: dict[str, int], scale: float, own: dict[str, int]
) -> list[_Tensor]:
    """``own`` are sectors that a program has stored before it loads them: L2 still holds those."""
    tensors = []
    for name, sectors in unique.items():
        size = math.ceil(counts.tensor_bytes.get(name, 0) / SECTOR) or math.inf
        distinct = scale * max(0, sectors - own.get(name, 0))
        tensors.append(_Tensor(max(distinct, scale * requests.get(name, sectors)), distinct, size))
    return tensors


def _loads_from_dram(loads: list[_Tensor], waves: float, room: float) -> tuple[float, float, float]:
    """Sectors read from DRAM: least, most, expected.

    ``room`` is the part of L2 (in sectors) data stays in.

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
