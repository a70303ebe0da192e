"""Coverages of Triton launches for the gate: one that finds races, and one that overwrites what was stored.

The emulation runs programs one after another, so that a kernel in which programs read what others wrote, write what
others still have to read, or store other values where others stored, is right here and wrong, at times, on a device.
Atomic operations may put programs in order: what one accessed before such an operation that releases may be accessed by
those that did one at the same place later that acquires. Whether they waited for it is not looked at.

Within a program an element that one lane accessed is another lane's to read or store after a barrier only, unless the
program is a single warp.
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
    """A coverage that also remembers which programs read and stored what, and which of their lanes. ``found`` names the
    tensors of which programs read or overwrite what others store, ``lanes`` those of which lanes do; ``has_atomics``
    tells of atomic operations, through which programs may notice their order.

    Programs run side by side as long as none loads from what the launch stores to, or stores where another one does:
    then there is no race.
    """

    asks_what_is_stored: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.lanes: list[str] = []
        self.has_atomics = False
        self._lane_order = _LaneOrder()
        self._last: dict[int, _LastAccesses] = {}
        self._program_number = 0
        self._order = _Order()
        self._together = False
        self._overwritten: Array | None = (
            None  # of the lanes of a store, those at what another program stored
        )

    @property
    def side_by_side(self) -> bool:
        return self.stored is not None and not any(map(self._shares, self.stored)) and super().side_by_side

    def _shares(self, base: int) -> bool:
        """Return whether several programs may store to one item of a storage."""
        return self.stored is None or (base in self.stored and bool(self.stored[base].shared.any()))

    def begin_launch(self, warps: int = 4) -> None:
        super().begin_launch(warps)
        self._last, self._order, self._program_number = {}, _Order(), 0
        self._lane_order = _LaneOrder(warps)
        self._together = False

    def begin_program(self) -> None:
        super().begin_program()
        self._program_number += 1
        self._together = False

    def begin_batch(self) -> None:
        super().begin_batch()
        self._together = True

    def undo_batch(self) -> None:
        for last in self._last.values():
            last.forget(self._program_number)
        super().undo_batch()

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
            self.has_atomics = True
            if (last := self._last.get(region.base)) is not None:
                self._note_race(last, "load", region, last.items(region, addresses))
            self._order.synchronise(self._program_number, region, addresses, *self.orders)
            self.barrier()
            return
        if kind == "load":
            self._order.acquire(self._program_number, addresses)
            if self.stored is not None and region.base not in self.stored:
                return
        if region.base not in self._last:
            self._last[region.base] = _LastAccesses(max(1, region.nbytes // itemsize), itemsize)
        last = self._last[region.base]
        items = last.items(region, addresses)
        self._note_race(last, kind, region, items)
        self._overwritten = None
        if kind == "store" and region.name not in self.found and self._shares(region.base):
            self._overwritten = self._overwrites(last, items)
        self._note_lanes(last, kind, region=region, items=items, active=active)
        last.note(kind, items, self._program_number, self._order.now)
        self._lane_order.note(kind, region.base, last.size, items, active)

    def _note_race(self, last: _LastAccesses, kind: str, region: Region, items: Array) -> None:
        """Note where another program stored what this one loads, or loaded what it stores, in no order. An atomic
        operation loads."""
        programs, times = last.conflicting(kind, items, self._program_number)
        ordered = not programs.size or self._order.knows(self._program_number, programs, times)
        if not ordered and region.name not in self.found:
            self.found.append(region.name)

    def _overwrites(self, last: _LastAccesses, items: Array) -> Array | None:
        """Return which of the ``items`` that are stored now another program stored last, in no order."""
        programs, times = last.stores(items)
        foreign: Array = (programs != 0) & (programs != self._program_number)
        if not foreign.any() or self._order.knows(self._program_number, programs[foreign], times[foreign]):
            return None
        return foreign

    @property
    def asks_what_changes(self) -> bool:
        return self._overwritten is not None

    def changes(self, region: Region, before: Array, after: Array) -> None:
        """Note where a program stores another value than the one before it did: which of them stays is chance. What
        differs by rounding alone is one value, computed twice."""
        at, self._overwritten = self._overwritten, None
        if at is not None and _differ(before.reshape(-1)[at], after.reshape(-1)[at]):
            self.found.append(region.name)

    def _note_lanes(
        self, last: _LastAccesses, kind: str, region: Region, items: Array, active: Array | None
    ) -> None:
        """Note where another lane stored what one loads, or loaded what one stores, since the last barrier."""
        if region.name in self.lanes:
            return
        recent = last.recent(kind, items, self._program_number, self._lane_order.ordered)
        if recent.any() and self._lane_order.crosses(kind, region.base, items, recent, active):
            self.lanes.append(region.name)


#: What two programs compute of one element may differ by this share of the largest element.
_ROUNDING = 0.01


def _differ(before: Array, after: Array) -> bool:
    if before.dtype.kind not in "fc":
        return bool((before != after).any())
    with np.errstate(invalid="ignore"):
        limit = _ROUNDING * max(np.abs(a[np.isfinite(a)]).max(initial=0.0) for a in (before, after))
        return not bool(np.isclose(before, after, rtol=0.0, atol=limit, equal_nan=True).all())


class _LastAccesses:
    """The program that last stored each item of a storage and the two that last loaded it, 0 for none, with times."""

    def __init__(self, size: int, itemsize: int) -> None:
        self.size, self.itemsize = size, itemsize
        self._stored, self._loaded, self._loaded_before = (np.zeros(size, np.int32) for _ in range(3))
        self._store_times, self._load_times, self._times_before = (np.zeros(size, np.int64) for _ in range(3))

    def items(self, region: Region, addresses: Array) -> Array:
        """Return the places of byte ``addresses`` in the storage of ``region``."""
        places: Array = (addresses.reshape(-1) - np.uint64(region.base)) // np.uint64(self.itemsize)
        return places

    def note(self, kind: str, items: Array, program: int, now: int) -> None:
        """Note that ``program`` loads or stores ``items``."""
        if kind == "store":
            self._stored[items], self._store_times[items] = program, now
            return
        others = items[self._loaded[items] != program]
        self._loaded_before[others], self._times_before[others] = (
            self._loaded[others],
            self._load_times[others],
        )
        self._loaded[items], self._load_times[items] = program, now

    def forget(self, program: int) -> None:
        """Take back what ``program`` stored, where no other did before."""
        self._stored[self._stored == program] = 0

    def stores(self, items: Array) -> tuple[Array, Array]:
        """Return the programs that last stored the ``items``, and when."""
        return self._stored[items], self._store_times[items]

    def conflicting(self, kind: str, items: Array, program: int) -> tuple[Array, Array]:
        """Return the other programs that last stored the ``items`` which ``program`` loads, or loaded those that it
        stores, and when."""
        programs, times = self._others(kind)[0][items], self._others(kind)[1][items]
        if kind == "store":
            own = programs == program
            programs = np.where(own, self._loaded_before[items], programs)
            times = np.where(own, self._times_before[items], times)
        foreign = (programs != 0) & (programs != program)
        return programs[foreign], times[foreign]

    def recent(self, kind: str, items: Array, program: int, since: int) -> Array:
        """Return which of the ``items`` that ``program`` loads it stored after ``since``, or the other way round."""
        programs, times = self._others(kind)
        recent: Array = (programs[items] == program) & (times[items] > since)
        return recent

    def _others(self, kind: str) -> tuple[Array, Array]:
        """Return the accesses that one of ``kind`` conflicts with."""
        return (self._stored, self._store_times) if kind == "load" else (self._loaded, self._load_times)


class _LaneOrder:
    """Which lane of a program stored and which loaded each element: its place in the block of the access. ``ordered``
    is the time of the last barrier, atomic operation, or reduction of a whole block.

    Accesses of blocks of one shape have one layout where they have one order of addresses, so that an element's lane is
    its place in the block. A single number belongs to all lanes. What is stored in another shape than it was loaded in
    went through memory that lanes share, behind a barrier; and a warp, which holds neighbouring places, loads as one
    before it stores.
    """

    def __init__(self, warps: int = 4) -> None:
        self.ordered = -1
        self._alone = warps == 1  # the lanes of a warp run in step
        self._lanes: dict[tuple[str, int], Array] = {}
        self._shapes: dict[tuple[int, ...], int] = {}

    def barrier(self, now: int) -> None:
        self.ordered = now

    def note(self, kind: str, base: int, size: int, items: Array, active: Array | None) -> None:
        """Note the lanes that load or store the ``items`` of a storage of ``size`` items."""
        if active is None or self._alone:
            return
        if (kind, base) not in self._lanes:
            self._lanes[kind, base] = np.zeros(size, np.int64)
        self._lanes[kind, base][items] = self._places(active)

    def crosses(self, kind: str, base: int, items: Array, which: Array, active: Array | None) -> bool:
        """Return whether ``which`` of the loaded ``items`` were stored by other lanes than those that load them, or
        of the stored ones loaded."""
        theirs = self._lanes.get(("store" if kind == "load" else "load", base))
        if active is None or theirs is None or active.size == 1:
            return False
        before, now = theirs[items][which], self._places(active)[which]
        if kind == "load":
            return bool((before != now).any())
        return bool(((before // _WARP != now // _WARP) & (before >> _SHAPE == now >> _SHAPE)).any())

    def _places(self, active: Array) -> Array:
        shape = tuple(n for n in active.shape if n > 1)
        number = self._shapes.setdefault(shape, len(self._shapes) + 1)
        return np.flatnonzero(active) + (number << _SHAPE)


#: A place in a block has so many bits; those above tell the shape of the block. A warp holds at least so many places in
#: a row.
_SHAPE, _WARP = 40, 32


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

    def synchronise(
        self, program: int, region: Region, addresses: Array, acquires: bool, releases: bool
    ) -> None:
        """An atomic operation: a program that ``acquires`` learns what the places know, one that ``releases`` leaves
        there what it knows."""
        places = [int(a) for a in addresses.reshape(-1)] if addresses.size <= _PLACES else [region.base]
        clock = self._programs.setdefault(program, {})
        for place in places if acquires else ():
            _learn(clock, self._places.get(place, {}))
        clock[program] = self.now
        for place in places:
            place_clock = self._places.setdefault(place, {})
            if releases:
                _learn(place_clock, clock)

    def acquire(self, program: int, addresses: Array) -> None:
        """A plain load: of a place of atomic operations, as of a flag that one waits for, it lets the program know."""
        if self._places and addresses.size == 1:
            place_clock = self._places.get(int(addresses.reshape(-1)[0]))
            if place_clock is not None:
                _learn(self._programs.setdefault(program, {}), place_clock)

    def knows(self, program: int, writers: Array, times: Array) -> bool:
        """Check whether a program may know all these stores."""
        clock = self._programs.get(program, {})
        return all(
            clock.get(int(writer), -1) >= int(times[writers == writer].max()) for writer in np.unique(writers)
        )


def _learn(clock: dict[int, int], other: dict[int, int]) -> None:
    for program, time in other.items():
        if clock.get(program, -1) < time:
            clock[program] = time


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
