"""Outputs and inputs as flat lists of NumPy arrays: from memory, or from a folder, where torch is not needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from accelopt_profiling.comparison.saved_values import NARROW, read_bytes, read_index
from accelopt_profiling.comparison.values import dtype_name, from_json, reach

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Leaf:
    """One array or number of a saved value.

    ``values`` is the array as stored, mapped from its file; bfloat16 and float8 become float32, which holds them
    exactly.
    """

    where: str
    library: str
    dtype: str
    shape: tuple[int, ...]
    values: Array
    type_name: str = ""  # the class of a torch tensor
    contiguous: bool = True

    @property
    def floating(self) -> bool:
        return self.dtype.startswith(("float", "bfloat"))


def flattened(values: Any, where: str = "output ") -> Iterator[tuple[str, Any]]:
    """Yield the values in nested lists, tuples and dictionaries in order, each with its place in words."""
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in items:
        place = f"{where}{key}" if where.endswith(" ") else f"{where}[{key}]"
        if type(value) in (list, tuple, dict):
            yield from flattened(value, place)
        else:
            yield place, value


def leaves_of(values: list[Any], others: bool = False) -> list[Leaf]:
    """Return the arrays and numbers in ``values``, in order, as ``read_leaves`` gives them for saved ones.

    With ``others``, values of other kinds are passed over.

    Raises:
        ValueError: a value is neither.
    """
    leaves: list[Leaf] = []
    for where, value in flattened(values):
        leaf = _leaf(where, value)
        if leaf is not None:
            leaves.append(leaf)
        elif not others:
            raise ValueError(f"{where} is a {type(value).__name__}, not an array or a number")
    return leaves


def read_leaves(folder: Path, others: bool = False) -> list[Leaf]:
    """Return the arrays and numbers saved in ``folder``, in order, lists and tuples flattened. With
    ``others``, values of other kinds are passed over: inputs may hold names and dtypes, outputs may not.

    Raises:
        ValueError: what is there was not written by ``save_values``.
    """

    def leaf(kind: str, about: Any) -> Any:
        if kind == "array":
            return _saved_array(about, folder)
        if kind == "dtype":
            return about
        raise ValueError(f"unknown saved value {kind!r:.200}")

    return leaves_of([from_json(data, leaf) for data in read_index(folder)], others)


def _leaf(where: str, value: Any) -> Leaf | None:
    torch = sys.modules.get("torch")
    if isinstance(value, Leaf):
        return replace(value, where=where)
    if value is None:
        return Leaf(where, "none", dtype="none", shape=(), values=np.zeros(()))
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        array = np.asarray(value)
        return Leaf(where, "number", dtype=str(array.dtype), shape=(), values=array)
    if torch is not None and isinstance(value, torch.Tensor):
        dtype = dtype_name(value.dtype)
        plain = value.detach().resolve_conj().resolve_neg().cpu()
        array = (plain.float() if dtype in NARROW else plain).numpy()
        return Leaf(
            where,
            "torch",
            dtype=dtype,
            shape=tuple(value.shape),
            values=array,
            type_name=type(value).__name__,
            contiguous=value.is_contiguous(),
        )
    if isinstance(value, (np.ndarray, np.generic)):
        array, dtype = np.asarray(value), dtype_name(value.dtype)
        if array.dtype.kind not in "biufc" and dtype not in NARROW:
            return None
        narrow = array.astype(np.float32) if dtype in NARROW else array
        return Leaf(where, "numpy", dtype=dtype, shape=array.shape, values=narrow)
    return None


def _saved_array(about: dict[str, Any], folder: Path) -> Leaf:
    """Return a saved array, mapped from its file.

    Raises ValueError, KeyError, TypeError: it is not as described.
    """
    dtype, shape, strides = str(about["dtype"]), tuple(about["shape"]), about.get("strides")
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError(f"a saved array has the shape {shape!r}")
    content = read_bytes(about, folder, mapped=True)
    if dtype in NARROW:
        values = content.view(np.uint16 if dtype == "bfloat16" else np.uint8)
    elif np.dtype(dtype).kind in "biufc":
        values = content.view(dtype)
    else:
        raise ValueError(f"a saved array has the dtype {dtype!r}")
    if strides is None or about.get("packed"):
        values = values.reshape(shape)
    else:
        values = _strided(values, shape, strides)
    if dtype in NARROW:
        values = decode_bits(values, dtype)
    dense = strides is None or _is_dense(shape, strides)
    return Leaf(
        "",
        str(about.get("library", "")),
        dtype=dtype,
        shape=shape,
        values=values,
        type_name=str(about.get("type", "")),
        contiguous=dense,
    )


def _is_dense(shape: tuple[int, ...], strides: list[int]) -> bool:
    """Check whether a tensor lies in memory in the order of its elements."""
    expected = 1
    for size, stride in reversed(list(zip(shape, strides, strict=True))):
        if size > 1 and stride != expected:
            return False
        expected *= max(size, 1)
    return True


def _strided(window: Array, shape: tuple[int, ...], strides: list[int]) -> Array:
    if min(strides, default=0) < 0 or reach(shape, strides) > window.size:
        raise ValueError("a saved tensor reaches beyond its file")
    steps = [s * window.itemsize for s in strides]
    return np.lib.stride_tricks.as_strided(window, shape, steps, writeable=False)


def decode_bits(bits: Array, dtype: str) -> Array:
    """Return bfloat16 and float8 bit patterns as float32, exactly.

    bfloat16 is the upper half of a float32. The float8 formats follow the OCP 8-bit floating point
    specification (e4m3fn, e5m2) and the variants with one NaN and no negative zero (fnuz): at most 256
    values, so a table serves.
    """
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if bits.dtype != np.uint8:
        raise ValueError(f"a saved {dtype} array is stored as {bits.dtype}")
    return _float8_table(dtype)[bits]


@cache
def _float8_table(dtype: str) -> Array:
    exponent_bits = 4 if "e4m3" in dtype else 5
    mantissa_bits = 7 - exponent_bits
    one_nan = dtype.endswith("fnuz")
    bias = (1 << (exponent_bits - 1)) - (0 if one_nan else 1)
    codes = np.arange(256)
    exponents, mantissas = (codes & 0x7F) >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
    significands = mantissas + ((exponents > 0) << mantissa_bits)
    signs = np.where(codes & 0x80, -1.0, 1.0)
    table: Array = signs * np.ldexp(significands, np.maximum(exponents, 1) - bias - mantissa_bits)
    if one_nan:
        table[0x80] = np.nan
    elif dtype == "float8_e4m3fn":
        table[codes & 0x7F == 0x7F] = np.nan
    else:
        top = exponents == exponents.max()
        table[top] = np.where(mantissas[top], np.nan, signs[top] * np.inf)
    return table.astype(np.float32)
