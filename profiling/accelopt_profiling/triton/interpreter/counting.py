"""Count bytes, sectors and operations of interpreted programs, per source line of the kernel's file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelopt_profiling.triton.interpreter.memory_bounds import Region

Array = np.ndarray[Any, Any]

#: fp64 operations in one special function (exp, log, division): no unit computes them. Our assumption.
DOUBLE_SPECIAL = 20
#: The most threads that a program can have.
MOST_THREADS = 1024
#: So many stores of a program are remembered for each tensor, to know what it loads of them.
MOST_STORES = 64
#: A DRAM or L2 transfer unit on NVIDIA GPUs; AMD's L2 counts 64- and 128-byte lines, multiples of it.
SECTOR_BYTES = 32


@dataclass
class LineCounts:
    """Sums over the sampled programs for one source line.

    Sectors are 32 bytes.

    ``load_bytes``/``store_bytes`` are useful bytes (lanes that are not masked off); ``lanes`` and ``masked`` count
    lanes of memory operations, and ``widest`` is how many the widest of them has; ``mma_flops`` by input dtype;
    ``special`` counts exp, sin, sqrt and the like.
    ``float_ops`` are element operations on all floats but fp64, whose own are ``double_ops`` (special ones and
    conversions included). ``int_ops`` are those on integers, comparisons and selections, several elements at a time,
    and ``visits`` how often a program came to the line for them. ``waits`` counts how often a program came back to this
    load: each time the next iteration of a loop waits for memory. ``hottest`` is the number of atomic updates that the
    most updated address gets in the whole launch.
    """

    load_bytes: int = 0
    store_bytes: int = 0
    load_sectors: int = 0
    store_sectors: int = 0
    lanes: int = 0
    masked: int = 0
    widest: int = 0
    float_ops: int = 0
    int_ops: int = 0
    visits: int = 0
    special: int = 0
    double_ops: int = 0
    atomics: int = 0
    waits: int = 0
    hottest: float = 0.0
    mma_flops: dict[str, int] = field(default_factory=dict)


@dataclass
class LaunchCounts:
    """``lines`` by 1-based line.

    ``programs`` is the launch's grid size and ``sampled`` how many were interpreted.

    ``unique_load_sectors``/``unique_store_sectors`` are, per tensor argument (by name), the distinct sectors the
    sample touched; ``load_sectors``/``store_sectors`` are all it asked for, each access counted;
    ``tensor_bytes`` the tensor's size; ``program_sectors`` are distinct within a program, summed over the programs.
    They feed the traffic estimate. ``narrow`` counts floating-point operations by their number of lanes, where those
    are fewer than the threads a program can have; ``dots`` counts matrix products by (m, n, k, bytes per element).
    ``widest`` is the largest number of lanes of a memory access. ``own_sectors`` are those of the loaded sectors that
    the program had stored itself before.
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
    program_sectors: dict[str, int] = field(default_factory=dict)
    line_tensors: dict[int, set[str]] = field(default_factory=dict)
    narrow: dict[int, int] = field(default_factory=dict)
    dots: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    widest: int = 0
    own_sectors: dict[str, int] = field(default_factory=dict)


def source_line(file: str) -> int:
    """Return the innermost line of ``file`` on the calling stack, 0 when there is none."""
    return call_site(file)[0]


def call_site(file: str) -> tuple[int, int]:
    """Return the innermost line of ``file`` on the calling stack and which call on that line it is; (0, 0) if none."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return frame.f_lineno, frame.f_lasti
        frame = frame.f_back  # type: ignore[assignment]
    return 0, 0


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
    """Fills a ``LaunchCounts``.

    ``enabled`` is switched off for programs that are run for their errors only.

    ``line_tensors`` maps a line to the tensor arguments it loads from. ``weight`` is how many iterations the present
    one stands for (see ``loops``).
    """

    def __init__(self, file: str, programs: int, regions: Iterable[Region]) -> None:
        self.file = file
        self.enabled = True
        self.counts = LaunchCounts(programs, 0, tensor_bytes={r.name: r.nbytes for r in regions})
        self.line_tensors = self.counts.line_tensors
        self.program_bytes: list[int] = []
        self.weight = 1.0
        self._bytes = 0
        self._sectors: dict[tuple[str, str], list[tuple[float, Array]]] = {}
        self._program: dict[str, list[tuple[float, Array]]] = {}
        self._stored: dict[str, list[Array]] = {}
        self._own: dict[str, list[tuple[float, Array]]] = {}
        self._awaited: set[tuple[int, int]] = set()
        self._visited = (0, 0)
        self._updates: dict[int, list[list[tuple[float, Array]]]] = {}

    def begin_program(self) -> None:
        self.weight = 1.0
        self._visited = (0, 0)

    def begin_iteration(self) -> None:
        """Note that a loop comes to its lines again."""
        self._visited = (0, 0)

    def _weighted(self, count: int) -> int:
        return count if self.weight == 1.0 else round(count * self.weight)

    def line(self, number: int | None = None) -> LineCounts:
        if number is None:
            number = source_line(self.file)
        self.counts.steps += self._weighted(1)
        line_counts = self.counts.lines.get(number)
        if line_counts is None:
            line_counts = self.counts.lines[number] = LineCounts()
        return line_counts

    def end_program(self) -> None:
        counts = self.counts
        counts.sampled += 1
        self.program_bytes.append(self._bytes)
        self._bytes = 0
        for name, parts in self._program.items():
            counts.program_sectors[name] = counts.program_sectors.get(name, 0) + _distinct(parts)
        self._program, self._stored, self._awaited = {}, {}, set()
        for updates in self._updates.values():
            updates.append([])

    def memory(self, kind: str, region: Region | None, active: Array, lanes: int, itemsize: int) -> None:
        """Count one load, store or atomic.

        ``active`` are the addresses of the lanes that are not masked off.
        """
        site = call_site(self.file)
        number = site[0]
        line = self.line(number)
        self.counts.widest = max(self.counts.widest, lanes)
        line.lanes += self._weighted(lanes)
        line.widest = max(line.widest, lanes)
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
            self._program.setdefault(name, []).append((self.weight, sectors))
            if name in self._stored:
                own = sectors[np.isin(sectors, np.concatenate(self._stored[name]))]
                self._own.setdefault(name, []).append((self.weight, own))
            self.line_tensors.setdefault(number, set()).add(name)
            self._wait(site, line)
        if kind != "load":
            line.store_bytes += nbytes
            line.store_sectors += count
            self._sectors.setdefault(("store", name), []).append((self.weight, sectors))
            if len(before := self._stored.setdefault(name, [])) < MOST_STORES:
                before.append(sectors)
        if kind in ("atomic", "exchange"):
            line.atomics += self._weighted(active.size)
            programs = self._updates.setdefault(number, [[] for _ in range(self.counts.sampled + 1)])
            programs[-1].append((self.weight, active.reshape(-1)))

    def _wait(self, site: tuple[int, int], line: LineCounts) -> None:
        """Note a load.

        Different loads can be under way together; one that comes again is of a later iteration, which begins after the
        earlier one's loads have arrived.
        """
        if site in self._awaited:
            line.waits += self._weighted(1)
            self._awaited.clear()
        self._awaited.add(site)

    def arithmetic(self, size: int, dtype: Any) -> None:
        """Count an operation on ``size`` elements of the Triton type ``dtype``."""
        site = call_site(self.file)
        line = self.line(site[0])
        if not dtype.is_floating():
            if size > 1:  # what is the same for all lanes is computed once, beside the rest
                line.int_ops += self._weighted(size)
                self._visit(site, line)
        elif dtype.primitive_bitwidth == 64:
            line.double_ops += self._weighted(size)
        else:
            line.float_ops += self._weighted(size)
            if size < MOST_THREADS:
                self.counts.narrow[size] = self.counts.narrow.get(size, 0) + self._weighted(1)

    def _visit(self, site: tuple[int, int], line: LineCounts) -> None:
        if site[0] != self._visited[0] or site[1] < self._visited[1]:
            line.visits += self._weighted(1)
        self._visited = site

    def special(self, size: int, dtype: Any) -> None:
        """Count exp, sin, sqrt, a division and the like of ``size`` elements."""
        if dtype.is_floating() and dtype.primitive_bitwidth == 64:
            self.line().double_ops += self._weighted(DOUBLE_SPECIAL * size)
        else:
            self.line().special += self._weighted(size)

    def dot(self, dtype: str, m: int, n: int, k: int, itemsize: int, times: int = 1) -> None:
        """Count ``times`` products of (m, k) and (k, n) elements of ``itemsize`` bytes."""
        flops = self.line().mma_flops
        flops[dtype] = flops.get(dtype, 0) + self._weighted(2 * m * n * k * times)
        shape = (m, n, k, itemsize)
        self.counts.dots[shape] = self.counts.dots.get(shape, 0) + self._weighted(times)

    def _hottest(self, programs: list[list[tuple[float, Array]]]) -> float:
        """Return the updates of the most updated address: one that several programs share gets them from all, and one
        that comes again in a sampled loop gets them from all of its iterations.
        """
        parts = [np.concatenate([active for _, active in p]) for p in programs if p]
        if not parts:
            return 0.0
        weight = max(weight for p in programs for weight, _ in p)
        addresses, updates = np.unique(np.concatenate(parts), return_counts=True)
        sharers = np.unique(np.concatenate([np.unique(p) for p in parts]), return_counts=True)[1]
        updates = np.where(updates > sharers, updates * weight, updates)
        scale = self.counts.programs / max(1, self.counts.sampled)
        return float(np.where(sharers > 1, updates * scale, updates).max()) if addresses.size else 0.0

    def finish(self) -> LaunchCounts:
        """Return the counts, with the distinct sectors of the whole sample per tensor and the hottest
        addresses."""
        for number, programs in self._updates.items():
            self.counts.lines[number].hottest = self._hottest(programs)
        for (kind, name), parts in self._sectors.items():
            counts = self.counts
            unique, total = (
                (counts.unique_load_sectors, counts.load_sectors)
                if kind == "load"
                else (counts.unique_store_sectors, counts.store_sectors)
            )
            unique[name], total[name] = _distinct(parts), round(sum(w * s.size for w, s in parts))
        self.counts.own_sectors = {name: _distinct(parts) for name, parts in self._own.items()}
        return self.counts


def _distinct(parts: list[tuple[float, Array]]) -> int:
    """Count the distinct sectors of accesses.

    A sector of a sampled iteration stands for as many as its weight.
    """
    every = np.concatenate([sectors for _, sectors in parts])
    if all(weight == 1.0 for weight, _ in parts):
        return int(np.unique(every).size)
    weights = np.concatenate([np.full(sectors.size, weight) for weight, sectors in parts])
    order = np.lexsort((weights, every))
    last = np.append(np.diff(every[order]) != 0, True) if every.size else np.zeros(0, np.bool_)
    return round(float(weights[order][last].sum()))
