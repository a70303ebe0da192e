"""Record the stores of programs, so that they can be undone or compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.triton.interpreter.memory_bounds import Region

Array = np.ndarray[Any, Any]


class StoreLog:
    """The stores of a run in order, each with the previous content of memory."""

    def __init__(self) -> None:
        self._stores: list[tuple[Region, Array, Array, Array, Array, bool]] = []

    def before(self, region: Region, addresses: Array, data: Array, active: Array, varying: bool) -> None:
        """Record a store before it happens; the arrays have one shape, with a first axis of programs if ``varying``."""
        old = region.load(addresses, active, np.zeros(addresses.shape, data.dtype))
        self._stores.append((region, addresses, data, active, old, varying))

    def undo(self) -> None:
        """Restore the previous content of memory, the last store first."""
        for region, addresses, _, active, old, _ in reversed(self._stores):
            region.store(addresses, old, active)
        self._stores.clear()

    def of(self, program: int) -> list[tuple[bytes, bytes]]:
        """Return addresses and values, store by store, of the program number ``program`` of the batch."""
        found = []
        for _, addresses, data, active, _, varying in self._stores:
            if varying:
                addresses, data, active = addresses[program], data[program], active[program]
            found.append((addresses[active].tobytes(), data[active].tobytes()))
        return found
