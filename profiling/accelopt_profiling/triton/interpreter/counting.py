"""Count bytes, sectors and operations of interpreted programs, per source line of the kernel's file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelopt_profiling.triton.interpreter.memory_bounds import Region

Array = np.ndarray[Any, Any]

#: A DRAM or L2 transfer unit on NVIDIA GPUs; AMD's L2 counts 64- and 128-byte lines, multiples of it.
SECTOR_BYTES = 32


@dataclass
class LineCounts:
    """Sums over the sampled programs for one source line. Sectors are 32 bytes.

    ``load_bytes``/``store_bytes`` are useful bytes (lanes that are not masked off); ``lanes`` and ``masked`` count
    lanes of memory operations; ``mma_flops`` by input dtype; ``special`` counts exp, sin, sqrt and the like.
    """

    load_bytes: int = 0
    store_bytes: int = 0
    load_sectors: int = 0
    store_sectors: int = 0
    lanes: int = 0
    masked: int = 0
    float_ops: int = 0
    int_ops: int = 0
    special: int = 0
    atomics: int = 0
    mma_flops: dict[str, int] = field(default_factory=dict)


@dataclass
class LaunchCounts:
    """``lines`` by 1-based line; ``programs`` is the launch's grid size and ``sampled`` how many were interpreted.

    ``unique_load_sectors``/``unique_store_sectors`` are, per tensor argument (by name), the distinct sectors the
    sample touched; ``load_sectors``/``store_sectors`` are all it asked for, each access counted;
    ``tensor_bytes`` the tensor's size. They feed the DRAM estimate.
    """

    programs: int
    sampled: int
    lines: dict[int, LineCounts] = field(default_factory=dict)
    unique_load_sectors: dict[str, int] = field(default_factory=dict)
    unique_store_sectors: dict[str, int] = field(default_factory=dict)
    tensor_bytes: dict[str, int] = field(default_factory=dict)
    load_sectors: dict[str, int] = field(default_factory=dict)
    store_sectors: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    loops_sampled: bool = False


def source_line(file: str) -> int:
    """Return the innermost line of ``file`` on the calling stack, 0 when there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return 0


def distinct_sectors(addresses: Array) -> Array:
    """Return the distinct 32-byte sectors (their numbers, sorted) of byte ``addresses``."""
    sectors: Array = addresses.reshape(-1) >> np.uint64(5)
    if sectors.size < 2:
        return sectors
    changed = sectors[1:] != sectors[:-1]
    if bool((sectors[1:] >= sectors[:-1]).all()):
        return np.concatenate([sectors[:1], sectors[1:][changed]])
    return np.unique(np.concatenate([sectors[:1], sectors[1:][changed]]))


class OperationCounter:
    """Fills a ``LaunchCounts``. ``enabled`` is switched off for programs that are run for their errors only.

    ``line_tensors`` maps a line to the tensor arguments it loads from. ``weight`` is how many iterations the present
    one stands for (see ``loops``).
    """

    def __init__(self, file: str, programs: int, regions: Iterable[Region]) -> None:
        self.file = file
        self.enabled = True
        self.counts = LaunchCounts(programs, 0, tensor_bytes={r.name: r.nbytes for r in regions})
        self.line_tensors: dict[int, set[str]] = {}
        self.program_bytes: list[int] = []
        self.weight = 1.0
        self._bytes = 0
        self._sectors: dict[tuple[str, str], list[tuple[float, Array]]] = {}

    def begin_program(self) -> None:
        self.weight = 1.0

    def _weighted(self, count: int) -> int:
        return count if self.weight == 1.0 else round(count * self.weight)

    def line(self) -> LineCounts:
        number = source_line(self.file)
        self.counts.steps += self._weighted(1)
        found = self.counts.lines.get(number)
        if found is None:
            found = self.counts.lines[number] = LineCounts()
        return found

    def end_program(self) -> None:
        self.counts.sampled += 1
        self.program_bytes.append(self._bytes)
        self._bytes = 0

    def memory(self, kind: str, region: Region | None, active: Array, lanes: int, itemsize: int) -> None:
        """Count one load, store or atomic; ``active`` are the addresses of the lanes that are not masked off."""
        line = self.line()
        line.lanes += self._weighted(lanes)
        line.masked += self._weighted(lanes - active.size)
        sectors = distinct_sectors(active)
        count = self._weighted(sectors.size)
        nbytes = self._weighted(active.size * itemsize)
        self._bytes += nbytes
        name = region.name if region else ""
        if kind != "store":
            line.load_bytes += nbytes
            line.load_sectors += count
            self._sectors.setdefault(("load", name), []).append((self.weight, sectors))
            self.line_tensors.setdefault(source_line(self.file), set()).add(name)
        if kind != "load":
            line.store_bytes += nbytes
            line.store_sectors += count
            self._sectors.setdefault(("store", name), []).append((self.weight, sectors))
        if kind == "atomic":
            line.atomics += self._weighted(active.size)

    def arithmetic(self, size: int, floating: bool) -> None:
        line = self.line()
        if floating:
            line.float_ops += self._weighted(size)
        else:
            line.int_ops += self._weighted(size)

    def special(self, size: int) -> None:
        self.line().special += self._weighted(size)

    def dot(self, dtype: str, flops: int) -> None:
        found = self.line().mma_flops
        found[dtype] = found.get(dtype, 0) + self._weighted(flops)

    def finish(self) -> LaunchCounts:
        """The counts, with the distinct sectors of the whole sample per tensor."""
        for (kind, name), parts in self._sectors.items():
            counts = self.counts
            unique, asked = (
                (counts.unique_load_sectors, counts.load_sectors)
                if kind == "load"
                else (counts.unique_store_sectors, counts.store_sectors)
            )
            unique[name], asked[name] = _distinct(parts), round(sum(w * s.size for w, s in parts))
        return self.counts


def _distinct(parts: list[tuple[float, Array]]) -> int:
    """Count the distinct sectors of accesses; a sector of a sampled iteration stands for as many as its weight."""
    every = np.concatenate([sectors for _, sectors in parts])
    if all(weight == 1.0 for weight, _ in parts):
        return int(np.unique(every).size)
    weights = np.concatenate([np.full(sectors.size, weight) for weight, sectors in parts])
    order = np.lexsort((weights, every))
    last = np.append(np.diff(every[order]) != 0, True) if every.size else np.zeros(0, np.bool_)
    return round(float(weights[order][last].sum()))
