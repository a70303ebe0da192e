"""Loops that run on the device, their bounds or conditions numbers of the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import index as as_int
from typing import Any

import numpy as np

from accelopt_profiling.nki.current.runtime_numbers import (
    WIDTHS,
    NkiScalar,
    Register,
    RuntimeNumber,
    told_gone,
)
from accelopt_profiling.nki.current.versions import change
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.frontend.handle import handed_out, taken


def dynamic_range(start: Any, stop: Any = None, step: Any = 1) -> Iterator[Any]:
    """Return a loop whose bounds may be registers and whose counter is one; gone since NKI 0.7."""
    machine = current()
    told_gone(machine, "nki.language.dynamic_range", "nl.dynamic_range")
    _check_loop(machine, "dynamic_range", step)
    first, last = (0, start) if stop is None else (start, stop)
    machine.recorder.forbid_replay()
    return _registers(machine, range(_bound(machine, first), _bound(machine, last), step))


def _registers(machine: Machine, numbers: range) -> Iterator[Any]:
    with machine.device_loop():
        for i in numbers:
            yield handed_out(Register(i, frozen=True))


def _check_loop(machine: Machine, name: str, step: Any = 1) -> None:
    """Check that a loop of the device has a constant step, and instructions that may be reordered."""
    if not isinstance(step, int) or step < 1:
        machine.fault("unsupported", f"{name}'s step is a positive constant.")
    if machine.ordered:
        machine.fault(
            "unsupported", f"nl.{name} has no place inside nl.no_reorder; put the order inside of its body."
        )


def _bound(machine: Machine, value: Any) -> int:
    if isinstance(value, NkiScalar) and WIDTHS[value.usable().dtype] == 64:
        machine.fault(
            "unsupported", "A loop's bound has 32 bits; an int64 scalar can be an offset inside of it."
        )
    return value.needed() if isinstance(value, RuntimeNumber) else as_int(value)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any], Any], step: int = 1) -> None:
    """``body_fun(i)`` for i from ``lower`` to ``upper`` (exclusive); i is a scalar, or a register where a bound is one.

    Since NKI 0.7 the bounds may be scalars; before, i is a register always.
    """
    machine = current()
    _check_loop(machine, "fori_loop", step)
    registers = any(isinstance(b, Register) for b in (lower, upper))
    machine.recorder.forbid_replay()
    before = change("names", "nki.isa.NkiScalar", machine.version) is not None
    kind = Register if registers or before else _scalar
    numbers = range(_bound(machine, lower), _bound(machine, upper), step)
    with machine.device_loop():
        for i in numbers:
            if body_fun(handed_out(kind(i))) is not None:
                machine.fault(
                    "unsupported", "The body of fori_loop returns nothing; keep its state in a tensor."
                )


def _scalar(value: int) -> NkiScalar:
    return NkiScalar(value, np.int32)


def while_loop(init: Any, body_fun: Callable[[Any], Any]) -> None:
    """``r = body_fun(r)`` from ``init`` on, as long as the register r is not zero."""
    machine = current()
    _check_loop(machine, "while_loop")
    machine.recorder.forbid_replay()
    condition = init
    with machine.device_loop():
        while True:
            if not isinstance(condition, Register):
                what = (
                    "init of while_loop"
                    if condition is init
                    else "body of while_loop returns the next condition: it"
                )
                machine.fault("unsupported", f"The {what} is a register, not {type(condition).__name__}.")
            if not condition.needed():
                return
            condition = taken(body_fun(handed_out(Register(condition.value, condition.origin))))
