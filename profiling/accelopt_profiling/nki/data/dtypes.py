"""Data types by the names kernels use. bfloat16 and the float8 types come from ``ml_dtypes`` where it is installed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

_PLAIN = {
    "float32": "float32", "float16": "float16", "int32": "int32", "uint32": "uint32", "int16": "int16",
    "uint16": "uint16", "int8": "int8", "uint8": "uint8", "bool_": "bool", "int64": "int64",
}  # fmt: skip
_NARROW = {
    "bfloat16": "bfloat16", "float8_e4m3": "float8_e4m3", "float8_e5m2": "float8_e5m2",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e3m4": "float8_e3m4", "float8_e8m0fnu": "float8_e8m0fnu",
}  # fmt: skip
#: Four values in one element of microscaling formats, and the type of one value.
PACKED = {
    "float8_e4m3fn_x4": "float8_e4m3fn", "float8_e5m2_x4": "float8_e5m2", "float4_e2m1fn_x4": "float4_e2m1fn",
}  # fmt: skip

#: The type of float32's size and exponent with 10 bits of mantissa: NumPy's float32, marked.
_TFLOAT32: np.dtype[Any] = np.dtype(np.float32, metadata={"name": "tfloat32"})

#: Every name that ``nl`` offers as a data type.
NAMES = (*_PLAIN, "tfloat32", *_NARROW, *PACKED)


class MissingTypeError(Exception):
    """A data type that NumPy alone cannot hold."""


@lru_cache(maxsize=64)
def dtype_named(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a kernel's type name.

    Raises:
        MissingTypeError: it needs ``ml_dtypes``, which is not installed, or is unknown.
    """
    if name == "tfloat32":
        return _TFLOAT32
    if name in _PLAIN:
        return np.dtype(_PLAIN[name])
    if name == "float4_e2m1fn_x4":
        return np.dtype([("x4", np.uint8, (2,))])  # two values in each byte, the first one in its lower half
    if name in PACKED:
        return np.dtype([("x4", dtype_named(PACKED[name]), (4,))])
    if name in _NARROW:
        try:
            import ml_dtypes

            narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _NARROW[name]))
        except (ImportError, AttributeError):
            message = f"The data type {name} needs the package ml_dtypes; install it where the kernel runs."
            raise MissingTypeError(message) from None
        return narrow
    try:
        return np.dtype(name)
    except TypeError:
        raise MissingTypeError(f"The data type {name} is unknown.") from None


#: The values of float4_e2m1fn by their three lower bits; the fourth is the sign.
_FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def packed_values(elements: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the four values of each element of a packed type, in float32, along a new last dimension."""
    inner = elements["x4"]
    if inner.dtype != np.uint8:
        return inner.astype(np.float32)
    halves = np.stack((inner & 15, inner >> 4), axis=-1).reshape(*elements.shape, 4)
    signed: npt.NDArray[np.float32] = np.where(halves & 8, -1, 1).astype(np.float32) * _FLOAT4[halves & 7]
    return signed


def as_dtype(value: Any) -> np.dtype[Any]:
    """Return a dtype from what a kernel passes: a dtype, a scalar type, a type name."""
    if isinstance(value, np.dtype):
        return value
    if isinstance(value, str):
        return dtype_named(value)
    kind: np.dtype[Any] = np.dtype(value)
    return kind


def type_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a type as kernels write it, tfloat32 told from float32."""
    return str(dtype.metadata["name"]) if dtype.metadata else dtype.name


def to_tfloat32(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Round to 10 bits of mantissa, to the nearest, ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    odd = (bits >> np.uint32(13)) & np.uint32(1)
    rounded = ((bits + np.uint32(0xFFF) + odd) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values).astype(np.float32)


def to_integers(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert as the engines do: to the nearest, ties to even, within the range of ``dtype``.

    NaN, of which no page says anything, becomes 0. Source: release notes of NKI 0.6.
    """
    limits = np.iinfo(dtype)
    if values.dtype.kind not in "iu":  # float64 holds the limits of every type
        values = np.rint(np.nan_to_num(values.astype(np.float64)))
    inside: npt.NDArray[Any] = np.clip(values, limits.min, limits.max).astype(dtype)
    return inside


@lru_cache(maxsize=64)
def is_float(dtype: np.dtype[Any]) -> bool:
    """Return True for floating-point types, those of ``ml_dtypes`` included, which NumPy calls void-like."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float8"))
