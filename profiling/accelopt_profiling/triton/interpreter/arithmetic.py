"""Triton's operations on NumPy arrays, corrected where Triton's own interpreter is wrong or refuses.

Corrected are bf16 and fp8 arithmetic and casts (the stock one computes on bit patterns), the NaN rules of
``minnum``/``maxnum``, ``tl.dot`` on packed types, libdevice calls, and where a pointer came from, which it forgets.
Each operation is counted where a ``OperationCounter`` listens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from accelopt_profiling.triton.interpreter.counting import OperationCounter
from accelopt_profiling.triton.interpreter.inline_assembly import run_assembly
from accelopt_profiling.triton.interpreter.libdevice import FUNCTIONS, function_name
from accelopt_profiling.triton.interpreter.numerics import is_packed, narrow, widen
from accelopt_profiling.triton_adapter.interpreter import (
    InterpreterBuilder,
    InterpreterOptions,
    TensorHandle,
    enums,
    numpy_dtype,
    splat,
)

Handle = Any  # triton.runtime.interpreter.TensorHandle

_SPECIAL = {np.exp, np.exp2, np.log, np.log2, np.sin, np.cos, np.sqrt}

#: Operations whose result is the same pointer, moved or reshaped.
_KEEPS_ORIGIN = (
    "create_addptr", "create_splat", "create_broadcast", "create_expand_dims", "create_reshape",
    "create_trans", "create_bitcast", "create_int_to_ptr", "create_ptr_to_int",
)  # fmt: skip


class UnsupportedOperationError(Exception):
    """The kernel does something that is not emulated; the message names it."""


class InstructionResults:
    """The results of an inline instruction, as Triton's builder hands them out."""

    def __init__(self, results: list[Handle]) -> None:
        self._results = results

    def get_result(self, number: int) -> Handle:
        return self._results[number]


def wide(handle: Handle) -> np.ndarray[Any, Any]:
    """Return the handle's numbers; packed types as fp32."""
    return widen(handle.data, handle.dtype.scalar.name)


def packed_as(data: np.ndarray[Any, Any], dtype: Any) -> Handle:
    """Return ``data`` as a handle of the Triton type ``dtype``, rounded to it."""
    scalar = dtype.scalar
    if is_packed(scalar.name):
        return TensorHandle(narrow(data, scalar.name), scalar)
    return TensorHandle(np.asarray(data, numpy_dtype(scalar)), scalar)


class ArithmeticBuilder(InterpreterBuilder):  # type: ignore[misc]
    """The interpreter's builder without its memory operations, which ``MemoryBuilder`` adds."""

    def __init__(self) -> None:
        super().__init__()
        # Overflow checks are for debug builds: here they would only be counted as the kernel's work.
        self.options: Any = InterpreterOptions(sanitize_overflow=False)
        self.counter: OperationCounter | None = None

    def get_bf16(self, value: float) -> Handle:
        return packed_as(np.array([value], np.float32), tl.bfloat16)

    def get_fp8e4nv(self, value: float) -> Handle:
        return packed_as(np.array([value], np.float32), tl.float8e4nv)

    def _count(self, size: int, dtype: Any) -> None:
        if self.counter is not None and self.counter.enabled:
            self.counter.arithmetic(size, dtype.scalar)

    def _count_special(self, size: int, dtype: Any) -> None:
        if self.counter is not None and self.counter.enabled:
            self.counter.special(size, dtype.scalar)

    # casts

    def cast_impl(self, src: Handle, dst_type: Any) -> Handle:
        self._count(src.data.size, _conversion_type(src.dtype.scalar, dst_type.scalar))
        return packed_as(wide(src), dst_type)

    def create_fp_to_fp(self, src: Handle, dst_type: Any, rounding_mode: Any) -> Handle:
        name = dst_type.scalar.name
        self._count(src.data.size, _conversion_type(src.dtype.scalar, dst_type.scalar))
        toward_zero = rounding_mode == enums.ROUNDING_MODE.RTZ
        if is_packed(name):
            return TensorHandle(narrow(wide(src), name, toward_zero=toward_zero), dst_type.scalar)
        return packed_as(wide(src), dst_type)

    # elementwise

    def binary_op(self, lhs: Handle, rhs: Handle, op: Callable[..., Any]) -> Handle:
        dtype = lhs.dtype.scalar
        if op is np.divide:
            self._count_special(max(lhs.data.size, rhs.data.size), dtype)
        else:
            self._count(max(lhs.data.size, rhs.data.size), dtype)
        if is_packed(dtype.name) and op not in (np.bitwise_and, np.bitwise_or, np.bitwise_xor):
            output = op(wide(lhs), wide(rhs))
            return TensorHandle(output, tl.int1) if output.dtype == np.bool_ else packed_as(output, dtype)
        output = op(lhs.data, rhs.data)
        if output.itemsize > max(1, dtype.primitive_bitwidth // 8) and not dtype.is_ptr():
            output = output.astype(numpy_dtype(dtype))
        return TensorHandle(output, dtype)

    def create_maxnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_minnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_clampf(self, arg: Handle, low: Handle, high: Handle, propagate_nans: Any) -> Handle:
        self._count(2 * arg.data.size, arg.dtype.scalar)
        every_nan = propagate_nans == tl.PropagateNan.ALL
        lower: Any = np.maximum if every_nan else np.fmax
        upper: Any = np.minimum if every_nan else np.fmin
        return packed_as(upper(lower(wide(arg), wide(low)), wide(high)), arg.dtype)

    def create_fma(self, x: Handle, y: Handle, z: Handle) -> Handle:
        self._count(2 * z.data.size, z.dtype.scalar)
        return packed_as(wide(x) * wide(y) + wide(z), z.dtype)

    def create_idiv(self, lhs: Handle, rhs: Handle) -> Handle:
        self._count(max(lhs.data.size, rhs.data.size), lhs.dtype.scalar)
        return super().create_idiv(lhs, rhs)

    def create_umulhi(self, lhs: Handle, rhs: Handle) -> Handle:
        self._count(max(lhs.data.size, rhs.data.size), lhs.dtype.scalar)
        return super().create_umulhi(lhs, rhs)

    def unary_op(self, arg: Handle, op: Callable[..., Any]) -> Handle:
        if op in _SPECIAL:
            self._count_special(arg.data.size, arg.dtype)
        else:
            self._count(arg.data.size, arg.dtype.scalar)
        return packed_as(op(wide(arg)), arg.dtype)

    def create_rsqrt(self, arg: Handle) -> Handle:
        self._count_special(arg.data.size, arg.dtype)
        return packed_as(1 / np.sqrt(wide(arg)), arg.dtype)

    def create_erf(self, arg: Handle) -> Handle:
        self._count_special(arg.data.size, arg.dtype)
        return packed_as(FUNCTIONS["erf"](wide(arg)), arg.dtype)

    def create_select(self, condition: Handle, lhs: Handle, rhs: Handle) -> Handle:
        self._count(max(lhs.data.size, condition.data.size), tl.int32)
        chosen = TensorHandle(np.where(condition.data, lhs.data, rhs.data), rhs.dtype.scalar)
        if lhs.attr.get("origin") == rhs.attr.get("origin"):
            _keep_origin(lhs, chosen)
        return chosen

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, arguments: list[Handle], result: Any, pure: bool
    ) -> Handle:
        function = FUNCTIONS.get(function_name(symbol))
        if function is None:
            raise UnsupportedOperationError(f"not emulated: the device function {symbol}")
        output = function(*(wide(argument) for argument in arguments))
        self._count_special(int(np.size(output)), result)
        return packed_as(np.asarray(output), result.scalar)

    # tensor cores

    def create_dot(self, a: Handle, b: Handle, d: Handle, input_precision: Any, max_imprecise: Any) -> Handle:
        name = a.dtype.scalar.name
        if self.counter is not None and self.counter.enabled:
            if name == "fp32" and input_precision == enums.INPUT_PRECISION.TF32:
                name = "tf32"
            *batch, m, k = a.data.shape
            bits = a.dtype.scalar.primitive_bitwidth
            self.counter.dot(name, m, b.data.shape[-1], k, max(1, bits // 8), math.prod(batch))
        shape = (*a.data.shape[:-1], b.data.shape[-1])
        if d.data.shape == shape and not a.data.any() and not b.data.any():  # zeros that stand for inputs
            return packed_as(wide(d), d.dtype)
        compute = np.float64 if name == "fp64" else np.int32 if a.dtype.scalar.is_int() else np.float32
        product = np.matmul(wide(a).astype(compute), wide(b).astype(compute))
        return packed_as(product + wide(d), d.dtype)

    def create_dot_scaled(self, *arguments: Any) -> Handle:
        raise UnsupportedOperationError("not emulated: tl.dot_scaled")

    def create_inline_asm(
        self, text: str, constraints: str, arguments: list[Handle], types: list[Any], *_: Any
    ) -> InstructionResults:
        run = run_assembly(text, [wide(argument) for argument in arguments])
        if run is None or constraints.count("=") != 1:  # one result per element, so one element at a time
            raise UnsupportedOperationError(
                f"not emulated: the inline assembly `{' '.join(text.split())[:60]}`"
            )
        self._count_special(int(np.size(run.result)) * run.instructions, types[0])
        return InstructionResults([packed_as(run.result, types[0].scalar)])

    def __getattr__(self, name: str) -> Any:
        """Refuse an operation that Triton's interpreter lacks by its name."""
        if name.startswith("create_"):
            raise UnsupportedOperationError(f"not emulated: {name.removeprefix('create_')}")
        raise AttributeError(name)

    # constants, pointers and shapes

    def create_addptr(self, ptr: Handle, offset: Handle) -> Handle:
        size = max(1, ptr.get_element_ty().primitive_bitwidth // 8)
        moved = np.multiply(offset.data, np.int64(size), dtype=np.int64, casting="unsafe").view(np.uint64)
        if ptr.data.shape == moved.shape:
            moved += ptr.data
        else:
            moved = ptr.data + moved
        return _keep_origin(ptr, TensorHandle(moved, ptr.dtype))

    def create_splat(self, *operands: Any) -> Handle:
        shape, arg = splat(*operands)
        value = arg.data.reshape(-1)[0]
        return _keep_origin(arg, TensorHandle(np.full(shape, value, arg.data.dtype), arg.dtype.scalar))

    def create_unsplat(self, arg: Handle) -> Handle:
        return _keep_origin(arg, TensorHandle(arg.data.reshape(-1)[:1], arg.dtype.scalar))


def _conversion_type(source: Any, result: Any) -> Any:
    """Return the type at whose rate a conversion runs: fp64 where one side is, else that of the result's kind."""
    if tl.float64 in (source, result):
        return tl.float64
    return tl.float32 if result.is_floating() else tl.int32


def _keep_origin(source: Handle, result: Handle) -> Handle:
    origin = source.attr.get("origin")
    if origin is not None:
        result.attr["origin"] = origin
    return result


def _passing_origin(name: str) -> Callable[..., Handle]:
    inherited = getattr(InterpreterBuilder, name)

    def operation(self: ArithmeticBuilder, pointer: Handle, *rest: Any) -> Handle:
        return _keep_origin(pointer, inherited(self, pointer, *rest))

    operation.__name__ = name
    return operation


for _name in _KEEPS_ORIGIN:
    if _name not in vars(ArithmeticBuilder):
        setattr(ArithmeticBuilder, _name, _passing_origin(_name))
