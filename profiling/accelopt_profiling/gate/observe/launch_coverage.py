"""Coverages of Triton launches for the gate: one that finds races, and one that overwrites what was stored.

The emulation runs programs one after another, so that a kernel in which programs read what others wrote is right here
and wrong, at times, on a device. Atomic operations may put programs in order: what one stored before such an operation
may be read by those that did one at the same place later. Whether they waited for it is not looked at.

Within a program an element that one lane stored is another lane's to read after a barrier only, unless the program is a
single warp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from accelopt_profiling.triton.interpreter.coverage import SampleCoverage, WrittenItems
from accelopt_profiling.triton.interpreter.lockstep import LockstepError
from accelopt_profiling.triton.interpreter.memory_bounds import Region

Array = np.ndarray[Any, Any]


class RaceCoverage(SampleCoverage):
    """A coverage that also remembers which program stored what, and which of its lanes. ``found`` names the tensors of
    which programs read what others stored, ``lanes`` those of which lanes did.

    Programs run side by side as long as none loads from what the launch stores to: then there is no race.
    """

    asks_what_is_stored: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.lanes: list[str] = []
        self._lane_order = _LaneOrder()
        self._writers: dict[int, tuple[int, Array, Array]] = {}
        self._program_number = 0
        self._order = _Order()
        self._together = False

    @property
    def side_by_side(self) -> bool:
        return self.stored is not None and super().side_by_side

    def begin_launch(self, warps: int = 4) -> None:
        super().begin_launch(warps)
        self._writers, self._order, self._program_number = {}, _Order(), 0
        self._lane_order = _LaneOrder(warps)
        self._together = False

    def begin_program(self) -> None:
        super().begin_program()
        self._program_number += 1
        self._together = False

    def begin_batch(self) -> None:
        super().begin_batch()
        self._together = True

    def follows(self, kind: str, region: Region) -> bool:
        if self.stored is None or self._order.begun or kind not in ("load", "store"):
            return True
        return region.base in self.stored or super().follows(kind, region)

    def barrier(self) -> None:
        self._lane_order.barrier(self._order.now)

    def access(
        self, kind: str, region: Region, addresses: Array, itemsize: int, active: Array | None = None
    ) -> None:
        if kind == "load" and self._together:
            raise LockstepError("a load of what the launch stores to")
        super().access(kind, region, addresses, itemsize)
        if not addresses.size:
            return
        self._order.tick()
        if kind not in ("load", "store"):
            self._order.synchronise(self._program_number, region, addresses)
            self.barrier()
            return
        size, writers, times = self._writers.get(region.base, (itemsize, None, None))
        if kind == "load":
            self._order.acquire(self._program_number, addresses)
        if writers is None or times is None:
            if kind == "load":
                return
            writers = np.zeros(max(1, region.nbytes // itemsize), np.int32)
            times = np.zeros(writers.size, np.int64)
            self._writers[region.base] = size, writers, times
        items = (addresses.reshape(-1) - np.uint64(region.base)) // np.uint64(size)
        if kind == "store":
            writers[items], times[items] = self._program_number, self._order.now
            self._lane_order.store(region.base, writers.size, items, active)
            return
        foreign = items[(writers[items] != 0) & (writers[items] != self._program_number)]
        if foreign.size and not self._order.knows(self._program_number, writers[foreign], times[foreign]):
            self.found += [region.name] if region.name not in self.found else []
        if region.name not in self.lanes:
            recent = (writers[items] == self._program_number) & (times[items] > self._lane_order.ordered)
            if recent.any() and self._lane_order.crosses(region.base, items, recent, active):
                self.lanes.append(region.name)


class _LaneOrder:
    """Which lane of a program stored each element: its place in the block of the store. ``ordered`` is the time of the
    last barrier, atomic operation, or reduction of a whole block.

    Accesses of blocks of one shape have one layout where they have one order of addresses, so that an element's lane is
    its place in the block. A single number belongs to all lanes.
    """

    def __init__(self, warps: int = 4) -> None:
        self.ordered = -1
        self._alone = warps == 1  # the lanes of a warp run in step
        self._lanes: dict[int, Array] = {}
        self._shapes: dict[tuple[int, ...], int] = {}

    def barrier(self, now: int) -> None:
        self.ordered = now

    def store(self, base: int, size: int, items: Array, active: Array | None) -> None:
        """Note the lanes that store the ``items`` of a storage of ``size`` items."""
        if active is None or self._alone:
            return
        if base not in self._lanes:
            self._lanes[base] = np.zeros(size, np.int64)
        self._lanes[base][items] = self._places(active)

    def crosses(self, base: int, items: Array, which: Array, active: Array | None) -> bool:
        """Return whether ``which`` of the loaded ``items`` were stored by other lanes than those that load them."""
        stored = self._lanes.get(base)
        if active is None or stored is None or active.size == 1:
            return False
        return bool((stored[items][which] != self._places(active)[which]).any())

    def _places(self, active: Array) -> Array:
        shape = tuple(n for n in active.shape if n > 1)
        number = self._shapes.setdefault(shape, len(self._shapes) + 1)
        return np.flatnonzero(active) + (number << 40)


#: Places of atomic operations that are told apart in one access; of more, the whole tensor is one place.
_PLACES = 8


class _Order:
    """What programs may know of one another: a clock of accesses, and for each program and each place of atomic
    operations up to when it knows the others' accesses (vector clocks: C. Fidge, 1988; F. Mattern, 1989).
    """

    def __init__(self) -> None:
        self.now = 0
        self._programs: dict[int, dict[int, int]] = {}
        self._places: dict[int, dict[int, int]] = {}

    @property
    def begun(self) -> bool:
        """True once there was an atomic operation."""
        return bool(self._places)

    def tick(self) -> None:
        self.now += 1

    def synchronise(self, program: int, region: Region, addresses: Array) -> None:
        """An atomic operation: the program learns what the places know, and leaves there what it knows."""
        places = [int(a) for a in addresses.reshape(-1)] if addresses.size <= _PLACES else [region.base]
        known = self._programs.setdefault(program, {})
        for place in places:
            _learn(known, self._places.get(place, {}))
        known[program] = self.now
        for place in places:
            _learn(self._places.setdefault(place, {}), known)

    def acquire(self, program: int, addresses: Array) -> None:
        """A plain load: of a place of atomic operations, as of a flag that one waits for, it lets the program know."""
        if self._places and addresses.size == 1:
            left = self._places.get(int(addresses.reshape(-1)[0]))
            if left is not None:
                _learn(self._programs.setdefault(program, {}), left)

    def knows(self, program: int, writers: Array, times: Array) -> bool:
        """Check whether a program may know all these stores."""
        known = self._programs.get(program, {})
        return all(
            known.get(int(writer), -1) >= int(times[writers == writer].max()) for writer in np.unique(writers)
        )


def _learn(known: dict[int, int], other: dict[int, int]) -> None:
    for program, time in other.items():
        if known.get(program, -1) < time:
            known[program] = time


#: All bits set: NaN in every float format, -1 or the largest value in integers.
_SPOILED = 0xFF


class SpoilingCoverage(SampleCoverage):
    """A coverage that overwrites at the end of each launch everything that the launch stored."""

    def __init__(self) -> None:
        super().__init__()
        self._stores: list[tuple[Region, Any, int]] = []

    def begin_launch(self, warps: int = 4) -> None:
        self._stores = []

    def begin_program(self) -> None:
        pass

    def follows(self, kind: str, region: Region) -> bool:
        return kind != "load"

    def access(self, kind: str, region: Region, addresses: Any, itemsize: int, active: Any = None) -> None:
        if kind != "load" and addresses.size:
            self._stores.append((region, np.asarray(addresses).reshape(-1), itemsize))

    def end_program(self) -> None:
        pass

    def end_launch(self, complete: bool, written: Mapping[int, WrittenItems] | None = None) -> None:
        import torch

        for base, items in (written or {}).items():
            size = items.region.itemsize
            places = np.flatnonzero(items.touched).astype(np.uint64) * np.uint64(size) + np.uint64(base)
            self._stores.append((items.region, places, size))
        for region, addresses, itemsize in self._stores:
            if region.storage is None:
                continue
            first = addresses.astype(np.int64) - region.base
            places = (first[:, None] + np.arange(itemsize)).reshape(-1)
            memory = torch.empty(0, dtype=torch.uint8).set_(region.storage)
            memory[torch.from_numpy(places)] = _SPOILED
        self._stores = []

    def poison(self, tensors: list[Any]) -> None:
        pass
