"""Whole numbers that a kernel computes with at run time: registers, and since NKI 0.7 scalars.

Both belong to the engines' sequencers. Moving and computing them takes time that AWS does not state: none is counted;
an instruction whose address depends on a number waits for the tensor that it was read from.
"""

from __future__ import annotations

from operator import index as as_int
from typing import Any, NoReturn

import numpy as np

from accelopt_profiling.nki.current.versions import change
from accelopt_profiling.nki.data.loop_counter import plain
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.diagnostics import ValuesNeededError
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.handle import Handle, represents

#: What a scalar's tensor may hold, with the bits of the scalar.
WIDTHS = {np.dtype(np.int32): 32, np.dtype(np.int64): 64}


class RuntimeNumber:
    """A number known on the device. ``value`` is None where only shapes are known; ``origin`` is the tensor that it was
    read from, if it was."""

    def __init__(self, value: int | None, origin: Tile | None = None) -> None:
        self.value, self.origin = value, origin

    def needed(self) -> int:
        """Return the value, for a loop that turns as often as it says.

        Raises:
            ValuesNeededError: it is read from a tensor, and the run has no values.
        """
        if self.value is None:
            message = (
                "This count is read from a tensor; without values nothing is known of the loop's length."
            )
            raise ValuesNeededError("unsupported", message, current().diagnostics.line())
        return self.value

    def _python_number(self) -> NoReturn:
        raise TypeError(
            "a number of the device has no value while its kernel is compiled: loop over it with nl.fori_loop or "
            "nl.while_loop, and address with scalar_offset"
        )

    __index__ = __int__ = __float__ = _python_number


class Register(RuntimeNumber):
    """``nisa.VirtualRegister``: 32 bits. One that is ``frozen`` counts a loop and is not written."""

    def __init__(self, value: int | None, origin: Tile | None = None, frozen: bool = False) -> None:
        super().__init__(value, origin)
        self.frozen = frozen

    def _no_operator(self, *unused: Any) -> NoReturn:
        current().fault(
            "unsupported",
            "A register is no number of Python's, to be compared or computed with; use it as an offset, or store it.",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = _no_operator
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _no_operator
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        """Return True if it is not zero, for ``while register:``, which versions before 0.7 have."""
        told_gone(current(), "nki.isa.VirtualRegister.__bool__", "A loop on a bare register")
        return self.needed() != 0


class NkiScalar(RuntimeNumber):
    """``nisa.NkiScalar``: an int32 or int64 that is computed with ``+``, ``-`` and ``*``, and wraps at its width."""

    def __init__(
        self, value: int | None, dtype: Any = np.int32, origin: Tile | None = None, comparison: bool = False
    ) -> None:
        self.dtype = np.dtype(dtype)
        bits = WIDTHS[self.dtype]
        if value is not None:
            value = (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        super().__init__(value, origin)
        self.comparison = comparison

    def usable(self) -> NkiScalar:
        """Return the scalar itself.

        Raises:
            KernelFaultError: it is the result of a comparison.
        """
        if self.comparison:
            current().fault(
                "unsupported", "What a comparison of scalars gives cannot be used; keep a flag in a tensor."
            )
        return self

    def _with(self, name: str, other: Any) -> tuple[int | None, Tile | None]:
        """Return the other operand's value and origin, None where one of both is unknown."""
        machine = current()
        self.usable()
        other = plain(other)
        if isinstance(other, NkiScalar):
            if other.usable().dtype != self.dtype:
                machine.fault(
                    "unsupported", f"Scalars of {self.dtype.name} and {other.dtype.name} do not go together."
                )
            return other.value, self.origin if self.origin is not None else other.origin
        if not isinstance(other, (int, np.integer)) or isinstance(other, bool):
            machine.fault(
                "unsupported",
                f"The other operand of {name} is a scalar or a whole number, not {type(other).__name__}.",
            )
        bits = WIDTHS[self.dtype]
        if not -(1 << bits - 1) <= int(other) < 1 << bits - 1:
            machine.fault("unsupported", f"{other} does not fit into the scalar's {bits} bits.")
        return int(other), self.origin

    def _computed(self, name: str, other: Any, function: Any) -> NkiScalar:
        value, origin = self._with(name, other)
        known = None if self.value is None or value is None else function(self.value, value)
        return NkiScalar(known, self.dtype, origin)

    def __add__(self, other: Any) -> NkiScalar:
        return self._computed("+", other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> NkiScalar:
        return self._computed("-", other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> NkiScalar:
        return self._computed("-", other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> NkiScalar:
        return self._computed("*", other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __neg__(self) -> NkiScalar:
        return self._computed("-", 0, lambda a, b: b - a)

    def __pos__(self) -> NkiScalar:
        return self.usable()

    def _compared(self, other: Any) -> NkiScalar:
        if WIDTHS[self.dtype] == 64:
            current().fault("unsupported", "There is no comparison of 64-bit scalars.")
        self._with("a comparison", other)
        return NkiScalar(None, self.dtype, self.origin, comparison=True)

    __lt__ = __le__ = __gt__ = __ge__ = _compared

    def __eq__(self, other: object) -> Any:
        return self._compared(other)

    def __ne__(self, other: object) -> Any:
        return self._compared(other)

    __hash__ = None  # type: ignore[assignment]

    def _no_operator(self, *unused: Any) -> NoReturn:
        current().fault("unsupported", "A scalar is computed with +, - and * alone.")

    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = (
        _no_operator
    )
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __and__ = __rand__ = __or__ = __ror__ = _no_operator
    __xor__ = __rxor__ = __invert__ = __abs__ = _no_operator

    def __bool__(self) -> bool:
        self._python_number()


class DynamicSlice:
    """``nl.ds`` from a number of the device on."""

    def __init__(self, start: RuntimeNumber, size: int) -> None:
        self.start, self.size = start, size


_NUMBER = ("__index__", "__int__", "__float__", "__bool__")
_OPERATORS = tuple(
    f"__{side}{name}__"
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "lshift",
        "rshift",
        "and",
        "or",
        "xor",
    )
    for side in ("", "r")
)


_COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")


@represents(
    Register,
    methods=(*_NUMBER, *_COMPARISONS, "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__",
             "__floordiv__", "__mod__"),
)  # fmt: skip
class KernelRegister(Handle):
    """A register as kernel code holds it."""

    __slots__ = ()


@represents(
    NkiScalar, "dtype",
    methods=(*_NUMBER, *_OPERATORS, "__neg__", "__pos__", "__invert__", "__abs__",
             *_COMPARISONS),
)  # fmt: skip
class KernelNkiScalar(Handle):
    """A scalar as kernel code holds it."""

    __slots__ = ()


@represents(DynamicSlice)
class KernelDynamicSlice(Handle):
    """What ``nl.ds`` of a register gives."""

    __slots__ = ()


def told_gone(machine: Machine, name: str, what: str) -> None:
    """Tell of something that the emulated version runs with a deprecated setting alone, or not for long any more."""
    reason = change("names", name, machine.version)
    if reason is None:
        return
    if reason.kind == "removed":
        message = f"{what} is gone since NKI {reason.version}, which runs it with {reason.unless} alone"
        machine.diagnostics.report("deprecated", f"{message}; use {reason.instead}.", "warning")
    else:
        message = f"{what} is deprecated since NKI {reason.version}; use {reason.instead}."
        machine.diagnostics.report("deprecated", message, "information")


def _one_element(machine: Machine, value: Any, what: str) -> Tile:
    machine.recorder.forbid_replay()  # a recording does not hold what is in registers
    tile = machine.operand(value, what)
    if tile.size != 1:
        machine.fault("out-of-bounds", f"A register holds one number; {what} has the shape {tile.shape}.")
    if tile.block.info.memory is MemorySpace.PSUM:
        machine.fault("unsupported", f"The {what} of a number lies in SBUF or HBM, not in PSUM.")
    return tile


def _read(machine: Machine, tile: Tile) -> int | None:
    values = machine.index_values(tile)
    return None if values is None else int(values.reshape(-1)[0])


def _register(machine: Machine, value: Any, what: str) -> Register:
    if not isinstance(value, Register):
        machine.fault("unsupported", f"The {what} is a register, not {type(value).__name__}.")
    if value.frozen and what == "dst":
        machine.fault("unsupported", "The counter of a loop of the device is not written (NKI 0.4).")
    return value


def register_alloc(x: Any = None) -> Register:
    """Return a new register: 0, a number, another register's value, or that of a tensor with one element."""
    current().recorder.forbid_replay()
    register = Register(0)
    if isinstance(x, Tile):
        register_load(register, x)
    elif x is not None:
        register_move(register, x)
    return register


def register_move(dst: Any, src: Any) -> None:
    """Move a number or another register's value into a register."""
    machine = current()
    machine.recorder.forbid_replay()
    register = _register(machine, dst, "dst")
    if isinstance(src, Register):
        register.value, register.origin = src.value, src.origin
    elif isinstance(plain(src), (int, np.integer)):
        register.value, register.origin = as_int(src), None
    else:
        machine.fault("unsupported", f"A register takes whole numbers and registers, not {src!r}.")


def register_load(dst: Any, src: Any) -> None:
    """Read a tensor with one element into a register."""
    machine = current()
    register, tile = _register(machine, dst, "dst"), _one_element(machine, src, "src")
    register.value, register.origin = _read(machine, tile), tile


def register_store(dst: Any, src: Any) -> None:
    """Write a register to a tensor with one element."""
    machine = current()
    register, tile = _register(machine, src, "src"), _one_element(machine, dst, "dst")
    _write(machine, tile, register.value)


def _write(machine: Machine, tile: Tile, value: int | None) -> None:
    machine.write(tile, None if value is None else machine.defer(np.asarray, value))


def _scalar_tensor(machine: Machine, value: Any, what: str) -> Tile:
    tile = _one_element(machine, value, what)
    if tile.dtype not in WIDTHS:
        machine.fault("unsupported", f"The {what} of a scalar holds int32 or int64, not {tile.dtype.name}.")
    return tile


def scalar_load(src: Any) -> NkiScalar:
    """Read a 1x1 tensor of int32 or int64, in SBUF or HBM, into a scalar of that width."""
    machine = current()
    tile = _scalar_tensor(machine, src, "src")
    return NkiScalar(_read(machine, tile), tile.dtype, tile)


def scalar_store(dst: Any, value: Any) -> None:
    """Write a scalar to a 1x1 tensor of its own width."""
    machine = current()
    tile = _scalar_tensor(machine, dst, "dst")
    if not isinstance(value, NkiScalar):
        machine.fault(
            "unsupported",
            f"scalar_store takes an NkiScalar, not {type(value).__name__}; write a constant with nisa.memset.",
        )
    if value.usable().dtype != tile.dtype:
        machine.fault(
            "unsupported", f"A scalar of {value.dtype.name} is not stored to a tensor of {tile.dtype.name}."
        )
    _write(machine, tile, value.value)
