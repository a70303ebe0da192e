"""``nki.language``: random numbers, by the instructions that draw them."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.nki.current.language import copy, create
from accelopt_profiling.nki.data.instruction import VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.binding import instruction
from accelopt_profiling.nki.frontend.language import data_type_or_none
from accelopt_profiling.nki.instructions.random_numbers import draw, told_random, uniform


def rand(shape: Any, dtype: Any, buffer: Any = None, name: str = "") -> Tile:
    """Return a new tensor of numbers that are distributed evenly from 0 to 1."""
    machine = current()
    result = create(shape, dtype, buffer, name, None)
    on_chip = result.block.info.memory is not MemorySpace.HBM
    values = result if on_chip else create(shape, dtype, None, "", None)
    told_random(machine, "nl.rand")
    draw(machine, VECTOR, machine.operand(values), uniform)
    if not on_chip:
        instruction("current", "dma_copy")(result, values)
    return result


def random_seed(seed: Tile) -> None:
    """Let ``rand`` begin anew with a seed: a tensor with one element of 32 bits."""
    instruction("current", "set_rng_seed")(seed)


def dropout(x: Tile, rate: Any, dtype: Any = None) -> Tile:
    """Replace elements by 0, each with the probability ``rate``, a number or one for each partition."""
    tile = current().operand(x)
    dst = create(tile.shape, tile.dtype, None, "", None)
    instruction("current", "dropout")(dst, tile, rate)
    return dst if data_type_or_none(dtype) in (None, tile.dtype) else copy(dst, dtype)
