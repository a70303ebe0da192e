"""What is used of Triton's own interpreter: its values, its operations, and how language functions reach them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import triton.language as tl
from triton.language import semantic as _semantic
from triton.language.extra import libdevice as _libdevice
from triton.runtime import interpreter as _stock

from accelopt_profiling.triton_adapter.runtime import VERSION, JITFunction, mangle_type

__all__ = ["JITFunction"]

Patch = tuple[Any, str, Any]

if VERSION < (3, 4):

    class _Handle(_stock.TensorHandle):  # type: ignore[misc]
        """A handle that is made with its attributes, as since 3.4."""

        def __init__(self, data: Any, dtype: Any, attr: dict[str, Any] | None = None) -> None:
            super().__init__(data, dtype)
            self.attr = {} if attr is None else attr

    _stock.TensorHandle = _Handle

InterpreterBuilder = _stock.InterpreterBuilder
InterpreterOptions = _stock.InterpreterOptions
TensorHandle = _stock.TensorHandle
TensorDescHandle = _stock.TensorDescHandle
#: Loads, stores and atomic operations on addresses, compiled.
memory = _stock._interpreter
#: The enumerations that operations take: rounding modes, precisions, atomic operations.
enums = _stock._ir

#: The modules whose attributes kernels name, and what makes their functions language functions.
LANGUAGES = (tl, tl.core)
is_builtin = tl.core.is_builtin
#: The vendors' modules of functions, and the libraries of device functions among them.
EXTRA = "triton.language.extra."
LIBDEVICE = tl.extra.cuda.libdevice
LIBRARIES = (_libdevice, LIBDEVICE, tl.extra.hip.libdevice)

#: The functions that Triton's own reductions combine two elements with.
COMBINE_SUM = tl.standard._sum_combine
COMBINE_MAX, COMBINE_MIN = tl.standard._elementwise_max, tl.standard._elementwise_min
COMBINE_ARGMAX = tl.standard._argmax_combine_tie_break_left
COMBINE_ARGMIN = tl.standard._argmin_combine_tie_break_left


class _FunctionsAsMethods:
    """The functions of 3.3's semantic module, called as the methods of the class that took their place."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(_semantic, name), builder=self._builder)


#: What checks types and calls a builder's operations: made with the builder.
Semantic = _stock.TritonSemantic if VERSION >= (3, 4) else _FunctionsAsMethods


def with_semantic(function: Callable[..., Any], builder: Any, semantic: Any) -> Callable[..., Any]:
    """Return a language function that runs on ``builder``, whatever its caller hands on."""
    handed: dict[str, Any] = {"_builder": builder} if VERSION < (3, 4) else {"_semantic": semantic}
    if is_builtin(function):
        function = inspect.unwrap(function, stop=lambda inner: not is_builtin(inner))

    def call(*arguments: Any, **options: Any) -> Any:
        if not options:  # as in most calls: each operator is one
            return function(*arguments, **handed)
        return function(*arguments, **{**without_semantic(options), **handed})

    return call


def without_semantic(options: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that the kernel's text gives."""
    return {
        name: value for name, value in options.items() if name not in ("_semantic", "_builder", "_generator")
    }


def builtins() -> Iterator[Patch]:
    """Yield the language functions and methods that a kernel may call, with their owners and names."""
    descriptor = (
        getattr(tl.core, "tensor_descriptor_base", None) or tl.core._experimental_tensor_descriptor_base
    )
    for owner in (*LANGUAGES, tl.math, tl.tensor, descriptor):
        for name, member in inspect.getmembers(owner, is_builtin):
            if name == "make_tensor_descriptor" and VERSION < (3, 5):  # it writes into the strides
                yield owner, name, partial(_with_list, member)
            else:
                yield owner, name, member


def _with_list(
    make: Callable[..., Any], base: Any, shape: Any, strides: Any, *rest: Any, **options: Any
) -> Any:
    return make(base, shape, list(strides), *rest, **options)


def patches() -> Iterator[Patch]:
    """Yield what else has to be replaced in Triton, so that it takes the values of an interpretation."""
    yield tl.dtype, "to_ir", lambda dtype, builder: dtype
    yield _stock, "_get_np_dtype", numpy_dtype
    if hasattr(tl, "condition"):  # since 3.5
        yield tl.condition, "__bool__", lambda condition: bool(condition.condition)
    if VERSION < (3, 6):  # it takes elements for bytes
        yield TensorDescHandle, "validate", _check_descriptor


def broadcasting(alike: Callable[[Any, Any], bool]) -> Patch:
    """Return a patch by which operands stay as they are where ``alike`` tells that they have the same shape."""
    owner: Any = Semantic if VERSION >= (3, 4) else _semantic
    place = 1 if VERSION >= (3, 4) else 0
    broadcast = owner.broadcast_impl_value

    def broadcast_operands(*operands: Any, **options: Any) -> Any:
        pair = operands[place : place + 2]
        return pair if len(pair) == 2 and alike(*pair) else broadcast(*operands, **options)

    return owner, "broadcast_impl_value", broadcast_operands


def pointers_of_blocks() -> Iterator[Patch]:
    """Yield the functions that compute a block's addresses: of tensor descriptors, and of block pointers up to 3.7."""
    for kind in (TensorDescHandle, getattr(_stock, "BlockPointerHandle", None)):
        if kind is not None:
            yield kind, "materialize_pointers", kind.materialize_pointers


def _check_descriptor(descriptor: Any) -> None:
    assert descriptor.base.data.item() % 16 == 0, "base must be 16-byte aligned"
    itemsize = descriptor.base.dtype.element_ty.primitive_bitwidth // 8
    for stride in descriptor.strides[:-1]:
        assert stride.data.item() * itemsize % 16 == 0, "stride must be 16-byte aligned"
    assert descriptor.strides[-1].data.item() == 1, "last dim must be contiguous"


def is_descriptor(value: Any) -> bool:
    """Return whether a block's addresses come from a tensor descriptor."""
    return isinstance(value, TensorDescHandle)


def splat(*operands: Any) -> tuple[Any, Any]:
    """Return shape and value of ``create_splat``'s operands: 3.3 gives the value and the shape, later a type first."""
    if VERSION < (3, 4):
        return operands[1], operands[0]
    return operands[0].shape, operands[1]


_POINTER = np.dtype(np.uint64)
_stock_dtype = _stock._get_np_dtype
_dtypes: dict[str, np.dtype[Any]] = {}


def numpy_dtype(type: Any) -> np.dtype[Any]:
    """Return NumPy's type of the interpreter's values of a type. Bf16 and fp8 are unsigned integers."""
    scalar = type.scalar
    if isinstance(scalar, tl.pointer_type):
        return _POINTER
    dtype = _dtypes.get(scalar.name)
    if dtype is None:
        dtype = _dtypes[scalar.name] = _stock_dtype(scalar)
    return dtype


def pointer_type(tensor: Any) -> Any:
    """Return Triton's type of the pointer that a tensor is passed as."""
    name = mangle_type(tensor)
    return tl.str_to_ty(name) if VERSION < (3, 5) else tl.str_to_ty(name, None)


def make_descriptor(semantic: Any, host: Any, base: Any, shape: list[Any], strides: list[Any]) -> Any:
    """Return the descriptor that a kernel sees of ``host``, one made by host code, with converted parts."""
    options = {"padding_option": host.padding} if hasattr(host, "padding") else {}  # since 3.5
    descriptor = semantic.make_tensor_descriptor(
        base=base,
        shape=shape,
        strides=[*strides, tl.constexpr(1)],
        block_shape=[tl.constexpr(size) for size in host.block_shape],
        **options,
    )
    if hasattr(host, "round_f32_to_tf32"):  # since 3.6, obeyed since 3.9
        descriptor.handle.round_f32_to_tf32 = host.round_f32_to_tf32
    return descriptor
