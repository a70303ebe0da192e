"""Data types by the names kernels use. bfloat16 and the float8 types come from ``ml_dtypes`` where it is installed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

_PLAIN = {
    "float32": "float32", "float16": "float16", "int32": "int32", "uint32": "uint32", "int16": "int16",
    "uint16": "uint16", "int8": "int8", "uint8": "uint8", "bool_": "bool", "int64": "int64",
    "tfloat32": "float32",  # stored in 32 bits
}  # fmt: skip
_NARROW = {
    "bfloat16": "bfloat16", "float8_e4m3": "float8_e4m3", "float8_e5m2": "float8_e5m2",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e3m4": "float8_e3m4",
}  # fmt: skip

#: Every name that ``nl`` offers as a data type.
NAMES = (*_PLAIN, *_NARROW)


class MissingTypeError(Exception):
    """A data type that NumPy alone cannot hold."""


@lru_cache(maxsize=64)
def dtype_named(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a kernel's type name.

    Raises:
        MissingType: it needs ``ml_dtypes``, which is not installed, or is unknown.
    """
    if name in _PLAIN:
        return np.dtype(_PLAIN[name])
    if name in _NARROW:
        try:
            import ml_dtypes
        except ImportError:
            message = f"The data type {name} needs the package ml_dtypes; install it where the kernel runs."
            raise MissingTypeError(message) from None
        narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _NARROW[name]))
        return narrow
    try:
        return np.dtype(name)
    except TypeError:
        raise MissingTypeError(f"The data type {name} is unknown.") from None


def as_dtype(value: Any) -> np.dtype[Any]:
    """Return a dtype from what a kernel passes: a dtype, a scalar type, a type name."""
    if isinstance(value, np.dtype):
        return value
    if isinstance(value, str):
        return dtype_named(value)
    kind: np.dtype[Any] = np.dtype(value)
    return kind


@lru_cache(maxsize=64)
def is_float(dtype: np.dtype[Any]) -> bool:
    """Return True for floating-point types, those of ``ml_dtypes`` included, which NumPy calls void-like."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float8"))
