"""Registers of the engines' sequencers, and the loops that run on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import index as as_int
from typing import Any

import numpy as np

from accelopt_profiling.nki.emulator.diagnostics import ValuesNeededError
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.handle import taken


class Register:
    """A 32-bit number that a kernel computes with at run time. ``value`` is None where only shapes are known."""

    def __init__(self, value: int | None) -> None:
        self.value = value

    def __index__(self) -> int:
        if self.value is None:
            message = (
                "This count is read from a tensor; without values nothing is known of the loop's length."
            )
            raise ValuesNeededError("unsupported", message, current().diagnostics.line())
        return self.value

    __int__ = __index__

    def __bool__(self) -> bool:
        return bool(int(self))


def register_alloc(x: Any = None) -> Register:
    """Return a new register: 0, a number, or the value of a tensor with one element."""
    current().recorder.forbid_replay()  # a recording does not hold what is in registers
    register = Register(0)
    if isinstance(x, Tile):
        register_load(register, x)
    elif x is not None:
        register.value = as_int(x)
    return register


def register_move(dst: Register, imm: Any) -> None:
    current().recorder.forbid_replay()
    dst.value = as_int(imm)


def register_load(dst: Register, src: Any) -> None:
    """Read a tensor with one element into a register."""
    machine = current()
    machine.recorder.forbid_replay()
    tile = machine.executor.operand(src, "src")
    if tile.size != 1:
        machine.fault("out-of-bounds", f"A register holds one number; src has the shape {tile.shape}.")
    values = machine.index_values(tile)
    dst.value = None if values is None else int(values.reshape(-1)[0])


def register_store(dst: Any, src: Register) -> None:
    """Write a register to a tensor with one element."""
    machine = current()
    machine.recorder.forbid_replay()
    tile = machine.executor.operand(dst, "dst")
    if tile.size != 1:
        machine.fault("out-of-bounds", f"A register holds one number; dst has the shape {tile.shape}.")
    machine.executor.write(tile, None if src.value is None else machine.executor.defer(np.asarray, src.value))


def dynamic_range(start: Any, stop: Any = None, step: Any = 1) -> Iterator[int]:
    """Return a loop whose bounds may be registers."""
    first, last = (0, start) if stop is None else (start, stop)
    return iter(range(int(first), int(last), int(step)))


def fori_loop(lower: Any, upper: Any, body: Callable[[int], Any], step: int = 1) -> None:
    """``body(i)`` for i from ``lower`` to ``upper`` (exclusive); it returns nothing."""
    machine = current()
    if not isinstance(step, int) or step < 1:
        machine.fault("unsupported", "fori_loop's step is a positive constant.")
    for i in range(int(lower), int(upper), step):
        if body(i) is not None:
            machine.fault("unsupported", "The body of fori_loop returns nothing; keep its state in a tensor.")


def while_loop(condition: Any, body: Callable[[], Any]) -> None:
    """``body()`` as long as the condition, then what it returned last, is not zero."""
    state = condition
    while int(state):
        state = taken(body())
        if state is None:
            current().fault("unsupported", "The body of while_loop returns the next condition.")
