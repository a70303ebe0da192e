"""Outputs and inputs as flat lists of NumPy arrays: from memory, or from a folder, where torch is not needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from accelopt_profiling.comparison.saved_values import BITS, read_bits, read_index

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Leaf:
    """One array or number of a saved value. ``values`` is the array as stored, mapped from its file; bfloat16 and
    float8 become float32, which holds them exactly.
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
    found: list[Leaf] = []
    for where, value in flattened(values):
        leaf = _leaf(where, value)
        if leaf is not None:
            found.append(leaf)
        elif not others:
            raise ValueError(f"{where} is a {type(value).__name__}, not an array or a number")
    return found


def _leaf(where: str, value: Any) -> Leaf | None:
    torch = sys.modules.get("torch")
    if value is None:
        return Leaf(where, "none", "none", (), np.zeros(()))
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        array = np.asarray(value)
        return Leaf(where, "number", str(array.dtype), (), array)
    if torch is not None and isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        plain = value.detach().resolve_conj().resolve_neg().cpu()
        array = (plain.float() if dtype in BITS else plain).numpy()
        return Leaf(
            where, "torch", dtype, tuple(value.shape), array, type(value).__name__, value.is_contiguous()
        )
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind not in "biufc" and str(array.dtype) not in BITS:
            return None
        narrow = array.astype(np.float32) if str(array.dtype) in BITS else array
        return Leaf(where, "numpy", str(array.dtype), array.shape, narrow)
    return None


def read_leaves(folder: Path, others: bool = False) -> list[Leaf]:
    """Return the arrays and numbers saved in ``folder``, in order, lists and tuples flattened. With
    ``others``, values of other kinds are passed over: inputs may hold names and dtypes, outputs may not.

    Raises:
        ValueError: what is there was not written by ``save_values``.
    """
    found: list[Leaf] = []
    for number, spec in enumerate(read_index(folder)):
        if not (others and isinstance(spec, dict) and spec.get("kind") in ("str", "torch.dtype")):
            _collect(spec, f"output {number}", folder, found)
    return found


def _collect(spec: Any, where: str, folder: Path, found: list[Leaf]) -> None:
    kind = spec.get("kind") if isinstance(spec, dict) else None
    if kind in ("list", "tuple", "dict"):
        items = spec["items"].items() if kind == "dict" else enumerate(spec["items"])
        for key, item in items:
            _collect(item, f"{where}[{key}]", folder, found)
    elif kind == "none":
        found.append(Leaf(where, "none", "none", (), np.zeros(())))
    elif kind in ("bool", "int", "float", "complex"):
        number = {"bool": bool, "int": int, "float": float, "complex": complex}[kind](spec["value"])
        dtype = {"float": "float64", "int": "int64", "bool": "bool", "complex": "complex128"}[kind]
        found.append(Leaf(where, "number", dtype, (), np.asarray(number)))
    elif kind == "array":
        library, dtype, kind = (str(spec.get(key, "")) for key in ("library", "dtype", "type"))
        found.append(
            Leaf(where, library, dtype, _shape(spec), _values(spec, folder), kind, _contiguous(spec))
        )
    else:
        raise ValueError(f"{where} is not an array or a number")


def _shape(spec: dict[str, Any]) -> tuple[int, ...]:
    shape = spec.get("shape")
    if not isinstance(shape, list) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError(f"a saved array has the shape {shape!r}")
    return tuple(shape)


def _contiguous(spec: dict[str, Any]) -> bool:
    """Check whether a torch tensor lies in memory in the order of its elements; NumPy arrays are saved so."""
    strides = spec.get("strides")
    if not isinstance(strides, list):
        return True
    expected = 1
    for size, stride in reversed(list(zip(_shape(spec), strides, strict=False))):
        if size > 1 and stride != expected:
            return False
        expected *= max(size, 1)
    return True


def _values(spec: dict[str, Any], folder: Path) -> Array:
    bits = read_bits(spec, folder, mapped=True)
    shape = _shape(spec)
    strides = spec.get("strides")
    if spec.get("packed"):
        bits = bits.reshape(shape)
    elif strides is not None:
        bits = _strided(bits, shape, strides)
    if bits.shape != shape:
        raise ValueError(f"a saved array of shape {shape} holds {bits.shape}")
    dtype = str(spec["dtype"])
    if dtype in BITS:
        return decode_bits(bits, dtype)
    return bits


def _strided(window: Array, shape: tuple[int, ...], strides: Any) -> Array:
    if (
        not isinstance(strides, list)
        or len(strides) != len(shape)
        or not all(isinstance(s, int) for s in strides)
    ):
        raise ValueError(f"a saved tensor has the strides {strides!r}")
    if 0 in shape:
        return np.zeros(shape, window.dtype)
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if window.ndim != 1 or min(strides, default=0) < 0 or span > window.size:
        raise ValueError("a saved tensor reaches beyond its file")
    size = window.itemsize
    return np.lib.stride_tricks.as_strided(window, shape, [s * size for s in strides], writeable=False)


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
    table = np.empty(256, np.float32)
    for code in range(256):
        sign = -1.0 if code & 0x80 else 1.0
        exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
        mantissa = code & ((1 << mantissa_bits) - 1)
        if exponent == 0:
            table[code] = sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
        else:
            table[code] = sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)
        top = exponent == (1 << exponent_bits) - 1
        if one_nan:
            table[code] = np.nan if code == 0x80 else table[code]
        elif dtype == "float8_e4m3fn":
            table[code] = np.nan if top and mantissa == 7 else table[code]
        elif top:
            table[code] = np.nan if mantissa else sign * np.inf
    return table
