"""Run many programs of a launch at once: values that differ among programs have a leading axis, one entry a program.

Such values come from program ids alone, so without ``lanes`` (one program at a time) this module changes nothing.
Types stay those of one program. An operation that is not listed here raises ``LockstepError`` for values that differ;
``batches`` then runs the programs one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import triton.language as tl

from accelopt_profiling.triton.interpreter.arithmetic import ArithmeticBuilder
from accelopt_profiling.triton.interpreter.work import PRODUCTS, WorkMeter
from accelopt_profiling.triton_adapter.interpreter import TensorHandle, is_descriptor, splat

Array = np.ndarray[Any, Any]
Handle = Any


#: Bytes that the start of a tensor descriptor's block is a multiple of.
_ALIGNED = 16


class LockstepError(Exception):
    """An operation cannot run for many programs at once."""


class DivergenceError(Exception):
    """Control flow depends on a value that differs.

    ``groups`` are the indices of programs with the same value.
    """

    def __init__(self, groups: list[Array]) -> None:
        super().__init__(f"{len(groups)} ways")
        self.groups = groups


class Varying(TensorHandle):  # type: ignore[misc]
    """A handle whose ``data`` has one more axis, the first, which counts the programs that run side by side."""

    def clone(self) -> Varying:
        return Varying(self.data.copy(), self.dtype)


def varies(values: Iterable[Any]) -> bool:
    """Return whether any of these handles, or of lists of them, differs among programs."""
    for value in values:  # noqa: SIM110 (asked for each operation: a generator takes twice as long)
        if isinstance(value, Varying) or (isinstance(value, (list, tuple)) and varies(value)):
            return True
    return False


def common(handle: Handle) -> Array:
    """Return the handle's data for one program, for use by Python code.

    Raises:
        DivergenceError: it is not the same for all programs.
    """
    data: Array = handle.data
    if not isinstance(handle, Varying):
        return data
    rows = np.ascontiguousarray(data).reshape(len(data), -1)
    bits = rows.view(np.uint8)
    if bool((bits == bits[0]).all()):
        first: Array = data[0]
        return first
    _, which = np.unique(bits, axis=0, return_inverse=True)
    which = which.reshape(-1)
    raise DivergenceError([np.flatnonzero(which == n) for n in range(int(which.max()) + 1)])


def aligned(data: Array, rank: int) -> Array:
    """Return varying ``data`` with ``rank`` axes for one program, added in front as broadcasting does."""
    missing = rank - (data.ndim - 1)
    return data.reshape(data.shape[0], *[1] * missing, *data.shape[1:]) if missing > 0 else data


def spread(handles: list[Handle]) -> list[Array]:
    """Return the data of handles that are combined element by element, so that NumPy broadcasts as Triton does."""
    if not varies(handles):
        return [h.data for h in handles]
    rank = max(_rank(h) for h in handles)
    return [aligned(h.data, rank) if isinstance(h, Varying) else h.data for h in handles]


def _rank(handle: Handle) -> int:
    return int(handle.data.ndim) - isinstance(handle, Varying)


def made_of(sources: Iterable[Any], result: Handle) -> Handle:
    """Mark the result ``result`` as one that differs among programs if any of its ``sources`` does."""
    if isinstance(result, Varying) or not varies(sources):
        return result
    return Varying(result.data, result.dtype, result.attr)


class LockstepBuilder(ArithmeticBuilder):
    """The builder's operations on values that differ.

    ``lanes`` holds the programs' ids, (programs, 3), or None. ``meter`` counts the work of all runs.
    """

    lanes: Array | None = None

    def __init__(self) -> None:
        super().__init__()
        self.meter = WorkMeter()

    def create_get_program_id(self, axis: int) -> Handle:
        if self.lanes is None:
            return super().create_get_program_id(axis)
        ids = self.lanes[:, axis].astype(np.int32)
        if bool((ids == ids[0]).all()):
            return TensorHandle(ids[:1], tl.int32)
        return Varying(ids.reshape(-1, 1), tl.int32)

    def create_splat(self, *operands: Any) -> Handle:
        shape, arg = splat(*operands)
        if not isinstance(arg, Varying):
            return super().create_splat(*operands)
        shape = [int(n) for n in shape]
        values = arg.data.reshape(len(arg.data), *[1] * len(shape))
        return Varying(np.broadcast_to(values, (len(values), *shape)), arg.dtype.scalar, dict(arg.attr))

    def create_unsplat(self, arg: Handle) -> Handle:
        if not isinstance(arg, Varying):
            return super().create_unsplat(arg)
        return Varying(arg.data.reshape(len(arg.data), -1)[:, :1], arg.dtype.scalar, dict(arg.attr))

    def create_expand_dims(self, arg: Handle, axis: int) -> Handle:
        return super().create_expand_dims(arg, axis + (isinstance(arg, Varying) and axis >= 0))

    def create_broadcast(self, arg: Handle, shape: Any) -> Handle:
        return super().create_broadcast(arg, self._whole(arg, shape))

    def create_reshape(self, arg: Handle, shape: Any, allow_reorder: bool) -> Handle:
        return super().create_reshape(arg, self._whole(arg, shape), allow_reorder)

    def create_trans(self, arg: Handle, perm: Any) -> Handle:
        if isinstance(arg, Varying):
            perm = [0, *(int(n) + 1 for n in perm)]
        return super().create_trans(arg, perm)

    def create_gather(self, src: Handle, indices: Handle, axis: int) -> Handle:
        if not varies([src, indices]):
            return super().create_gather(src, indices, axis)
        data, places = (self.every(h) for h in (src, indices))
        return Varying(np.take_along_axis(data, places, axis=axis + (axis >= 0)), src.dtype.scalar)

    def create_join(self, lhs: Handle, rhs: Handle) -> Handle:
        if not varies([lhs, rhs]):
            return super().create_join(lhs, rhs)
        return Varying(np.stack([self.every(lhs), self.every(rhs)], axis=-1), lhs.dtype.scalar)

    def create_split(self, val: Handle) -> tuple[Handle, Handle]:
        left, right = super().create_split(val)
        return made_of([val], left), made_of([val], right)

    def create_cat(self, lhs: Handle, rhs: Handle) -> Handle:
        if not varies([lhs, rhs]):
            return super().create_cat(lhs, rhs)
        return Varying(np.concatenate([self.every(lhs), self.every(rhs)], axis=1), lhs.dtype.scalar)

    def create_dot(self, a: Handle, b: Handle, d: Handle, input_precision: Any, max_imprecise: Any) -> Handle:
        result = super().create_dot(a, b, d, input_precision, max_imprecise)
        self.meter.spend(result.data.size * (2 + a.data.shape[-1] // PRODUCTS))
        return made_of([a, b, d], result)

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, arguments: list[Handle], result: Any, pure: bool
    ) -> Handle:
        handles = _as_aligned(arguments) if varies(arguments) else arguments
        value = super().create_extern_elementwise(library, path, symbol, handles, result, pure)
        self.meter.spend(value.data.size)
        return made_of(arguments, value)

    def create_advance(self, ptr: Any, offsets: list[Handle]) -> Any:
        if not varies([*ptr.offsets, *offsets]):
            return super().create_advance(ptr, offsets)
        if len(ptr.offsets) != len(offsets):
            raise LockstepError("the offsets do not fit the block pointer")
        moved = [self.create_add(old, by) for old, by in zip(ptr.offsets, offsets, strict=True)]
        return type(ptr)(ptr.base, ptr.shape, ptr.strides, moved, ptr.block_shape, ptr.order)

    def _whole(self, arg: Handle, shape: Any) -> list[int]:
        shape = [int(n) for n in shape]
        return [len(arg.data), *shape] if isinstance(arg, Varying) else shape

    def every(self, handle: Handle) -> Array:
        """Return the data with an entry for each program, whether or not it differs."""
        assert self.lanes is not None
        data: Array = handle.data
        return data if isinstance(handle, Varying) else np.broadcast_to(data, (len(self.lanes), *data.shape))


def materialized(pointer: Any, offsets: list[Handle], checked: Iterable[int]) -> tuple[Handle, Array]:
    """Return the addresses and the mask of a block of a block pointer or tensor descriptor that differs among programs.

    ``checked`` are the axes whose bounds mask elements off.
    """
    shape = [int(n) for n in pointer.block_shape]
    itemsize = max(1, pointer.base.get_element_ty().primitive_bitwidth // 8)
    if is_descriptor(pointer) and bool((offsets[-1].data * itemsize % _ALIGNED).any()):
        raise LockstepError("a block that is not aligned")

    def scalar(handle: Handle) -> Array:
        value: Array = handle.data.reshape(-1, *[1] * len(shape))
        return value

    addresses, mask = scalar(pointer.base), np.ones((1, *shape), np.bool_)
    for axis, size in enumerate(shape):
        places = np.arange(size).reshape([size if n == axis else 1 for n in range(len(shape))])
        at = scalar(offsets[axis]) + places
        addresses = addresses + (itemsize * at * scalar(pointer.strides[axis])).astype(np.uint64)
        if axis in checked:
            mask = mask & (at < scalar(pointer.shape[axis])) & (at >= 0)
    return Varying(np.broadcast_to(addresses, (len(addresses), *shape)), pointer.base.dtype.scalar), mask


def _as_aligned(handles: Sequence[Any]) -> list[Any]:
    rank = max(_rank(h) for h in handles if isinstance(h, TensorHandle))
    return [
        Varying(aligned(h.data, rank), h.dtype, h.attr) if isinstance(h, Varying) and _rank(h) < rank else h
        for h in handles
    ]


def _element_by_element(name: str) -> Callable[..., Handle]:
    inherited = getattr(ArithmeticBuilder, name)

    def operation(self: LockstepBuilder, *arguments: Any) -> Handle:
        if not varies(arguments):
            value = inherited(self, *arguments)
        else:
            value = inherited(self, *_as_aligned(arguments))
            value = Varying(value.data, value.dtype, value.attr)
        self.meter.spend(value.data.size)
        return value

    operation.__name__ = name
    return operation


def _as_it_is(name: str) -> Callable[..., Handle]:
    inherited = getattr(LockstepBuilder, name)

    def operation(self: LockstepBuilder, arg: Handle, *rest: Any) -> Handle:
        return made_of([arg], inherited(self, arg, *rest))

    operation.__name__ = name
    return operation


def _refusing(name: str) -> Callable[..., Any]:
    inherited = getattr(ArithmeticBuilder, name)

    def operation(self: LockstepBuilder, *arguments: Any) -> Any:
        if varies(arguments):
            raise LockstepError(name)
        return inherited(self, *arguments)

    operation.__name__ = name
    return operation


#: Operations on single elements, without "create_".
ELEMENTWISE = (
    "add", "and", "approx_divf", "ashr", "bitcast", "ceil", "clampf", "cos", "erf", "exp", "exp2", "fabs", "fadd",
    "fdiv", "floor", "fma", "fmul", "fneg", "fp_ext", "fp_to_fp", "fp_to_si", "fp_to_ui", "fp_trunc", "frem",
    "fsub", "iabs", "idiv", "int_cast", "int_to_ptr", "log", "log2", "lshr", "maximumf", "maxnumf",
    "maxsi", "maxui", "minimumf", "minnumf", "minsi", "minui", "mul", "or", "precise_divf",
    "precise_sqrt", "ptr_to_int", "rsqrt", "sdiv", "select", "shl", "si_to_fp", "sin", "sqrt", "srem",
    "sub", "udiv", "ui_to_fp", "umulhi", "urem", "xor", "addptr", "fcmpOEQ", "fcmpOGE", "fcmpOGT",
    "fcmpOLE", "fcmpOLT", "fcmpONE", "fcmpUEQ", "fcmpUGE", "fcmpUGT", "fcmpULE", "fcmpULT", "fcmpUNE",
    "icmpEQ", "icmpNE", "icmpSGE", "icmpSGT", "icmpSLE", "icmpSLT", "icmpUGE", "icmpUGT", "icmpULE",
    "icmpULT",
)  # fmt: skip
#: Operations that treat values that differ like others; their result differs too.
SHAPING = ("create_expand_dims", "create_broadcast", "create_reshape", "create_trans")
#: Operations without special treatment: they take no values, make Python objects of handles, or consist of other
#: operations (``MemoryBuilder`` has those on memory).
_SAFE = (
    "create_get_num_programs", "create_make_range", "create_barrier", "create_make_block_ptr", "create_load",
    "create_store", "create_masked_load", "create_masked_store", "create_tensor_pointer_load",
    "create_tensor_pointer_store", "create_descriptor_load", "create_descriptor_store", "create_assert",
    "create_assume",
)  # fmt: skip

for _name in (f"create_{operation}" for operation in ELEMENTWISE):
    if hasattr(ArithmeticBuilder, _name):
        setattr(LockstepBuilder, _name, _element_by_element(_name))
for _name in SHAPING:
    setattr(LockstepBuilder, _name, _as_it_is(_name))
for _name in dir(ArithmeticBuilder):
    if _name.startswith("create_") and _name not in (*vars(LockstepBuilder), *_SAFE):
        setattr(LockstepBuilder, _name, _refusing(_name))
