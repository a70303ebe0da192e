"""Handles: what kernel code holds instead of the emulator's tensors.

While a kernel is traced on a device, its tensors have a shape and a type and no values. A handle is the same: it has
the methods of the dialect, and nothing that can be asked of it leads to the emulator or to memory. The tensor behind it
lies in a slot that has no name, so that neither an attribute nor ``copy``, ``pickle`` or another class of the same
layout reads it; only this module has the slot's descriptor. Functions of the dialect are given out ``handing``: they
take handles and return handles.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NoReturn

import numpy as np

from accelopt_profiling.nki.data.loop_counter import plain
from accelopt_profiling.nki.emulator.assignment import LoopReduction
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.machine import current, running_machine
from accelopt_profiling.nki.emulator.tile import Tile

_slot_name = f"_{secrets.token_hex(8)}"


class Handle:
    """A thing of the emulator that kernel code may hold, pass on and give back, but not look into."""

    __slots__ = (_slot_name,)
    __hash__ = None  # type: ignore[assignment]  # no key, as arrays are none

    def __init__(self) -> None:
        raise TypeError(f"a {type(self).__name__} is made by the functions of NKI")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a tensor of a kernel has no attribute {name!r}")

    def __array__(self, *unused: Any, **named_unused: Any) -> NoReturn:
        no_values("NumPy")

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **named: Any) -> Any:
        """``np.float32(2) * tensor`` is the tensor's own operator; any other NumPy function needs values."""
        if method == "__call__" and len(operands) == 2 and operands[1] is self and not named:
            reflected = getattr(self, _REFLECTED.get(function.__name__, ""), None)
            if np.ndim(operands[0]) == 0 and reflected is not None:
                return reflected(operands[0])
        return no_values(f"numpy.{getattr(function, '__name__', 'ufunc')}")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        no_values("copy or pickle")


#: NumPy's functions behind the operators of its scalars, and the operator of the other operand.
_REFLECTED = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "greater": "__lt__", "greater_equal": "__le__", "less": "__gt__", "less_equal": "__ge__",
}  # fmt: skip

_slot = Handle.__dict__[_slot_name]
for _name in (_slot_name, "__slots__"):
    delattr(Handle, _name)
del _slot_name, _name
_held, _hold = _slot.__get__, _slot.__set__
del _slot


def no_values(reader: str) -> NoReturn:
    """End the run as the compiler would: ``reader`` asked a tensor for values.

    Raises:
        KernelFaultError: always.
    """
    current().fault(
        "unsupported", f"A tensor has no values while its kernel is compiled, so {reader} cannot read it."
    )


def handed_out(value: Any) -> Any:
    """Return ``value`` as kernel code gets it: the emulator's own things as handles, also inside tuples and lists."""
    kind = _HANDLES.get(type(value))
    if kind is not None:
        handle = kind.__new__(kind)
        _hold(handle, value)
        return handle
    if type(value) in _NESTS:
        return type(value)([handed_out(item) for item in value])
    return value


def taken(value: Any) -> Any:
    """Return ``value`` as the emulator works with it: what is behind a handle, also inside tuples and lists."""
    if isinstance(value, Handle):
        return _held(value)
    if type(value) in _NESTS:
        return type(value)([taken(item) for item in value])
    return value


_NESTS = frozenset((tuple, list))
_HANDLES: dict[type, type[Handle]] = {}


def represents(kind: type, *attributes: str, methods: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """Make a class the handle of ``kind``: with its ``attributes``, to be read, and its ``methods``."""

    def register(handle: Any) -> Any:
        for name in attributes:
            setattr(handle, name, _attribute(kind, name))
        for name in methods:
            setattr(handle, name, handing(getattr(kind, name)))
        _HANDLES[kind] = handle
        return handle

    return register


def _attribute(kind: type, name: str) -> property:
    read = attrgetter(name)
    return property(lambda self: read(_held(self)), doc=getattr(getattr(kind, name, None), "__doc__", None))


def handing(function: Callable[..., Any], plain_numbers: bool = False) -> Callable[..., Any]:
    """Return ``function`` for kernel code: it takes handles and returns handles.

    With ``plain_numbers`` it gets the counter of a loop that is recorded as the number that it is now.
    """

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        values = [
            _held(item) if isinstance(item, Handle) else taken(item) if type(item) in _NESTS else item
            for item in arguments
        ]
        for name, item in named.items():
            if isinstance(item, Handle) or type(item) in _NESTS:
                named[name] = taken(item)
        if plain_numbers:
            machine = running_machine()
            if machine is not None and machine.recorder.loops:
                values = [_plain(item) for item in values]
                named = {name: _plain(item) for name, item in named.items()}
        value = function(*values, **named)
        return value if value is None else handed_out(value)

    del call.__wrapped__
    return call


def _plain(value: Any) -> Any:
    if type(value) is slice:
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    return type(value)(map(_plain, value)) if type(value) in _NESTS else plain(value)


_OPERATORS = (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__pow__",
    "__neg__", "__gt__", "__ge__", "__lt__", "__le__", "__iadd__", "__getitem__", "__setitem__", "__len__",
    "__iter__", "__bool__", "__repr__",
)  # fmt: skip
#: What every dialect's tensors have.
TENSOR_ATTRIBUTES = ("shape", "ndim", "dtype", "buffer", "size")
TENSOR_METHODS = ("reshape", "broadcast_to", "astype", "view", *_OPERATORS)


@represents(Tile, *TENSOR_ATTRIBUTES, methods=TENSOR_METHODS)
class KernelTensor(Handle):
    """A tensor, a tile, or a view of one, as kernel code holds it."""

    __slots__ = ()

    def __class_getitem__(cls, kind: Any) -> type[KernelTensor]:
        """Return the annotation ``nt.tensor[nt.mutable]``."""
        return mutable_tensor if kind is mutable else cls


class mutable_tensor(KernelTensor):  # its name in nki.typing
    """The annotation of an argument that the kernel writes to."""

    __slots__ = ()


class mutable:  # its name in nki.typing
    """Makes ``nt.tensor[nt.mutable]`` the annotation of an argument that the kernel writes to."""


#: What ``nki.typing`` has in both dialects.
TYPING = {"mutable_tensor": mutable_tensor, "mutable": mutable, "scalar": np.generic}


@represents(BlockArray, "shape", "ndim", "dtype", "buffer", methods=("__getitem__", "__setitem__"))
class KernelBlocks(Handle):
    """Beta 1's tensor with block dimensions, as kernel code holds it."""

    __slots__ = ()


@represents(LoopReduction)
class KernelReduction(Handle):
    """The result of ``nl.loop_reduce`` until it is assigned."""

    __slots__ = ()
