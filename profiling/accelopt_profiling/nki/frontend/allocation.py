"""Instructions with a destination in the form of Beta 1, which returns the tile that they write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.emulator.executor import narrow
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.operations.table import Operation


@dataclass
class Allocation:
    """A destination that the instruction makes: of ``dtype``, or that of its first operand, written inside ``mask``.

    ``shape`` is that of the operands together where the instruction says no other.
    """

    dtype: np.dtype[Any] | None
    mask: Any = None
    shape: tuple[int, ...] | None = None


def returning(
    function: Callable[..., Any], operation: Operation, defaults: dict[str, Any]
) -> Callable[..., Any]:
    """Return an instruction as Beta 1 calls it; ``defaults`` are for what Beta 1's signature lacks.

    Where that names a destination too, a mask cuts all tiles down.
    """
    tiles = (*operation.reads, *operation.writes)

    def call(mask: Any = None, dtype: Any = None, **values: Any) -> Tile | None:
        if "dst" not in values:
            allocation = Allocation(None if dtype is None else as_dtype(dtype), mask)
            result: Tile = function(dst=allocation, **defaults, **values)
            return result
        if mask is not None:
            values = {
                n: _inside(current(), mask, values["dst"], v) if n in tiles else v for n, v in values.items()
            }
        function(**defaults, **values)
        return None

    return call


def _inside(machine: Machine, mask: Any, dst: Tile, value: Any) -> Any:
    """Return the part of a tile that a mask over ``dst`` leaves.

    Raises:
        KernelFaultError: the mask is not a box.
    """
    box, where = machine.executor.resolve_mask(mask, dst.shape)
    if where is not None:
        machine.fault("unsupported", "This instruction takes masks that cut off whole rows or columns only.")
    return value.within(narrow(box, value.shape)) if box is not None and isinstance(value, Tile) else value
