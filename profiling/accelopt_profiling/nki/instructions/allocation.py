"""Instructions in the form of Beta 1, which allocates the tile that they write and returns it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.executor import narrow
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.operations.table import Operation


@dataclass
class Allocation:
    """A destination that the instruction makes: of ``dtype``, or that of its first operand, written inside ``mask``.

    ``shape`` is that of the operands together where the instruction says no other. ``part`` is the box of it that is
    written, where the mask is one of operands in another shape.
    """

    dtype: np.dtype[Any] | None
    mask: Any = None
    shape: tuple[int, ...] | None = None
    memory: MemorySpace = MemorySpace.SBUF
    part: Box | None = None


def returning(
    function: Callable[..., Any], operation: Operation, defaults: dict[str, Any]
) -> Callable[..., Any]:
    """Return an instruction as Beta 1 calls it; ``defaults`` are for what Beta 1's signature lacks.

    Where that names a destination too, a mask cuts all tiles down, unless ``function`` takes it.
    """
    tiles = (*operation.reads, *operation.writes)
    takes_mask = "mask" in inspect.signature(function).parameters

    def call(mask: Any = None, dtype: Any = None, shape: Any = None, **values: Any) -> Tile | None:
        if "dst" not in values:
            sizes = None if shape is None else tuple(int(n) for n in shape)
            allocation = Allocation(None if dtype is None else as_dtype(dtype), mask, sizes)
            result: Tile = function(dst=allocation, **defaults, **values)
            return result
        if takes_mask:
            values["mask"] = mask
        elif mask is not None:
            dst = values["dst"]
            values = {n: _inside(current(), mask, dst, v) if n in tiles else v for n, v in values.items()}
        function(**defaults, **values)
        return None

    return call


def _inside(machine: Machine, mask: Any, dst: Tile, value: Any) -> Any:
    """Return the part of a tile that a mask over ``dst`` leaves."""
    box = mask_box(machine, mask, dst.shape)
    if box is None or not isinstance(value, Tile):
        return value
    machine.check_range(value, box)
    return value.within(narrow(box, value.shape))


def mask_box(machine: Machine, mask: Any, shape: tuple[int, ...]) -> Box | None:
    """Return the box of a mask over a ``shape``; None for all of it.

    Raises:
        KernelFaultError: the mask is not a box.
    """
    box, where = machine.resolve_mask(mask, shape)
    if where is not None:
        machine.fault("unsupported", "This instruction takes masks that cut off whole rows or columns only.")
    return box


def cut(machine: Machine, dst: Any, *tiles: Tile) -> tuple[Box | None, list[Tile]]:
    """Return the box of an allocated destination's mask over the first tile, and the tiles cut down to it.

    The others lose partitions alone. None, and the tiles as they are, where there is no mask.
    """
    box = mask_box(machine, dst.mask, tiles[0].shape) if isinstance(dst, Allocation) else None
    if box is None:
        return None, list(tiles)
    machine.check_range(tiles[0], box)
    others = [t.within((box[0], *((0, n) for n in t.shape[1:]))) for t in tiles[1:]]
    return box, [tiles[0].within(box), *others]


def allocated(dst: Any, shape: tuple[int, ...], part: Box | None = None) -> bool:
    """Return whether ``dst`` is to be allocated; it gets the ``shape`` then, of which ``part`` is written."""
    if isinstance(dst, Allocation):
        dst.shape, dst.part, dst.mask = shape, part, None
    return isinstance(dst, Allocation)
