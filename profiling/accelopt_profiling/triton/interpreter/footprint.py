"""Find the elements that a launch writes, in all of its programs, without computing what it writes there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from accelopt_profiling.triton.interpreter.coverage import SampleCoverage, WrittenItems
from accelopt_profiling.triton.interpreter.deferred import DeferringBuilder
from accelopt_profiling.triton.interpreter.interpret import Interpreter
from accelopt_profiling.triton.interpreter.lockstep import Array, DivergenceError, LockstepError
from accelopt_profiling.triton.interpreter.memory_bounds import LaunchMemory, Region
from accelopt_profiling.triton.interpreter.sampling import ProgramId, sample_programs
from accelopt_profiling.triton.launch import CapturedLaunch

#: Lanes of the widest store of the programs that run side by side.
_LANES = 1 << 20
#: A kernel's body is run at most so often: control flow that differs from program to program takes one run for each.
_RUNS = 1024
#: Lanes of loads that are checked. Our choice: they take less than a second.
_READS = 1 << 24
#: Footprints that are kept, for launches like earlier ones.
_KEPT = 16


@dataclass
class Footprint:
    """The items that a launch writes, by the address of their storage.

    ``reads`` are the storages that addresses, masks and branches were computed from.
    """

    written: dict[int, WrittenItems] = field(default_factory=dict)
    reads: set[int] = field(default_factory=set)
    _writer: dict[int, Array] = field(default_factory=dict)

    def follows(self, kind: str, region: Region) -> bool:
        """Return whether an access is to be told, as a coverage does: what is written comes by ``write``."""
        return kind == "load"

    def access(
        self, kind: str, region: Region, addresses: Array, itemsize: int, active: Array | None = None
    ) -> None:
        """Note a load."""
        self.reads.add(region.base)

    def atomic_order(self, acquires: bool, releases: bool) -> None:
        """In whatever order programs run, they write the same."""

    def barrier(self) -> None:
        """Lanes that wait for one another write no more for it."""

    asks_what_changes = False

    def changes(self, region: Region, before: Array, after: Array) -> None:
        """Values are not computed here."""

    def write(self, region: Region, addresses: Array, programs: Array, itemsize: int) -> None:
        """Note what ``programs`` (a number from 1 on for each of ``addresses``) write."""
        if not addresses.size:
            return
        if region.base not in self.written:
            count = max(1, region.nbytes // region.itemsize)
            self.written[region.base] = WrittenItems(
                region, np.zeros(count, np.bool_), np.zeros(count, np.bool_)
            )
            self._writer[region.base] = np.zeros(count, np.int32)
        items, writer = self.written[region.base], self._writer[region.base]
        first = addresses - np.uint64(region.base)
        for offset in range(0, itemsize, region.itemsize):
            at = ((first + np.uint64(offset)) // np.uint64(region.itemsize)).view(np.int64)
            before = writer[at]
            writer[at] = programs
            items.touched[at] = True
            items.shared[at[((before != 0) & (before != programs)) | (writer[at] != programs)]] = True

    @property
    def depends_on_itself(self) -> bool:
        """True when an address, a mask or a branch was computed from memory that the launch writes to."""
        return not self.reads.isdisjoint(self.written)

    def read_from(self, bases: Collection[int]) -> bool:
        return not self.reads.isdisjoint(bases)


class FootprintFinder:
    """Finds footprints. Kept for all launches of a process, because building its patches takes a while."""

    def __init__(self) -> None:
        self._interpreter = Interpreter(DeferringBuilder())
        self._found: dict[
            Hashable, list[WrittenItems | None]
        ] = {}  # by region, in the order of the arguments

    def find(
        self, launch: CapturedLaunch, memory: LaunchMemory, coverage: SampleCoverage, reads: bool = False
    ) -> Footprint | None:
        """Return what all programs of ``launch`` write.

        ``memory`` gets the writes out of bounds, with ``reads`` also the loads at addresses that are no data, as far as
        ``_READS`` goes.

        None where that cannot be known without running them in order: an address, a mask or a branch depends on
        what the launch itself writes or on elements that ``coverage`` does not know, or an operation is not emulated.
        """
        key = _key(launch, memory, reads)
        if key is not None and key in self._found:
            return _footprint_of(memory, self._found[key])
        footprint = Footprint()
        builder = self._interpreter.builder
        builder.coverage = builder.footprint = footprint
        builder.reads = _READS if reads else 0
        try:
            with self._interpreter.launched(launch, memory) as call:
                _Runs(builder, call).all(sample_programs(launch.grid, None).counted)
        except Exception:  # whatever it is, it shows when the programs are run
            return None
        finally:
            builder.lanes = None
        if footprint.depends_on_itself or footprint.read_from(coverage.partly_known()):
            return None
        if key is not None and not footprint.reads and not memory.faults:
            if len(self._found) >= _KEPT:
                del self._found[next(iter(self._found))]
            self._found[key] = [footprint.written.get(region.base) for region in memory.regions.values()]
        return footprint


class _Runs:
    """Runs a kernel's body for all programs, side by side as long as control flow is the same."""

    def __init__(self, builder: DeferringBuilder, call: Callable[[], None]) -> None:
        self._builder, self._call = builder, call
        self._left = _RUNS

    def all(self, programs: Sequence[ProgramId]) -> None:
        """Run ``programs``, the last one first: it shows how much one writes.

        Raises:
            LockstepError: too many runs would be needed.
        """
        if not programs:
            return
        self._builder.widest = 0
        self._run([programs[-1]])
        size = max(_LANES // max(1, self._builder.widest), 1)
        rest = programs[:-1]
        for start in range(0, len(rest), size):
            self._run(rest[start : start + size])

    def _run(self, programs: Sequence[ProgramId]) -> None:
        waiting = [programs]
        while waiting:
            group = waiting.pop()
            self._left -= 1
            if self._left < 0:
                raise LockstepError("control flow differs too much")
            self._builder.set_grid_idx(*group[0])
            self._builder.lanes = np.array(group, np.int64) if len(group) > 1 else None
            try:
                self._call()
            except DivergenceError as diverged:
                waiting += [[group[int(n)] for n in indices] for indices in diverged.groups]
            except LockstepError:
                if len(group) == 1:
                    raise
                waiting += [[program] for program in group]


def _key(launch: CapturedLaunch, memory: LaunchMemory, reads: bool) -> Hashable | None:
    """Return all that a footprint depends on which depends on no values.

    None where that cannot be compared.
    """
    order = {
        base: number for number, base in enumerate(dict.fromkeys(r.base for r in memory.regions.values()))
    }
    tensors = tuple(
        (r.name, order[r.base], r.start - r.base, r.nbytes, r.itemsize) for r in memory.regions.values()
    )
    values = tuple(map(_plain, launch.args)), tuple(launch.signature.items())
    key = launch.fn, launch.grid, tensors, *values, reads
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _plain(value: Any) -> Any:
    if hasattr(value, "block_shape"):
        return tuple(value.shape), tuple(value.strides), tuple(value.block_shape)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return None if hasattr(value, "data_ptr") else (type(value), value)


def _footprint_of(memory: LaunchMemory, items: list[WrittenItems | None]) -> Footprint:
    regions = memory.regions.values()
    return Footprint({
        region.base: replace(written, region=region)
        for region, written in zip(regions, items, strict=True)
        if written is not None
    })  # fmt: skip
