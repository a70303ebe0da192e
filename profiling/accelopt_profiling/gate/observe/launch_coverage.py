"""Coverages of Triton launches for the gate: one that finds races, and one that overwrites what was stored.

The emulation runs programs one after another, so that a kernel in which programs read what others wrote is right here
and wrong, at times, on a device. Launches with atomic operations are left out: those may put programs in order.
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
    """A coverage that also remembers which program stored what. ``found`` names the tensors, in words.

    Programs run side by side as long as none loads from what the launch stores to: then there is no race.
    """

    asks_what_is_stored: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._writers: dict[int, tuple[int, Array]] = {}
        self._suspects: list[str] = []
        self._program_number = 0
        self._ordered = False
        self._together = False

    @property
    def side_by_side(self) -> bool:
        return self.stored is not None and super().side_by_side

    def begin_launch(self) -> None:
        super().begin_launch()
        self._writers, self._suspects, self._ordered, self._program_number = {}, [], False, 0
        self._together = False

    def begin_program(self) -> None:
        super().begin_program()
        self._program_number += 1
        self._together = False

    def begin_batch(self) -> None:
        super().begin_batch()
        self._together = True

    def follows(self, kind: str, region: Region) -> bool:
        return self.stored is None or region.base in self.stored or super().follows(kind, region)

    def access(self, kind: str, region: Region, addresses: Array, itemsize: int) -> None:
        if kind == "load" and self._together:
            raise LockstepError("a load of what the launch stores to")
        super().access(kind, region, addresses, itemsize)
        if kind not in ("load", "store"):
            self._ordered = True
        elif addresses.size and not self._ordered:
            size, writers = self._writers.get(region.base, (itemsize, None))
            if writers is None:
                if kind == "load":
                    return
                writers = np.zeros(max(1, region.nbytes // itemsize), np.int32)
                self._writers[region.base] = size, writers
            items = (addresses.reshape(-1) - np.uint64(region.base)) // np.uint64(size)
            if kind == "store":
                writers[items] = self._program_number
            elif bool(((writers[items] != 0) & (writers[items] != self._program_number)).any()):
                self._suspects.append(region.name)

    def end_launch(self, complete: bool, written: Mapping[int, WrittenItems] | None = None) -> None:
        if not self._ordered:
            self.found += [name for name in dict.fromkeys(self._suspects) if name not in self.found]
        super().end_launch(complete, written)


#: All bits set: NaN in every float format, -1 or the largest value in integers.
_SPOILED = 0xFF


class SpoilingCoverage(SampleCoverage):
    """A coverage that overwrites at the end of each launch everything that the launch stored."""

    def __init__(self) -> None:
        super().__init__()
        self._stores: list[tuple[Region, Any, int]] = []

    def begin_launch(self) -> None:
        self._stores = []

    def begin_program(self) -> None:
        pass

    def follows(self, kind: str, region: Region) -> bool:
        return kind != "load"

    def access(self, kind: str, region: Region, addresses: Any, itemsize: int) -> None:
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
