"""Uninitialised memory that can be told from results: NaNs whose bits no computation gives."""

from __future__ import annotations

from typing import Any

import numpy as np

#: By the name of a float type: quiet NaNs with bits of our own in the fraction, as unsigned integers.
UNWRITTEN = {"float16": 0x7EAC, "bfloat16": 0x7FEC, "float32": 0x7FC0ACCE, "float64": 0x7FF80000ACCE55ED}


def fill(array: np.ndarray[Any, Any]) -> bool:
    """Fill a NumPy array with the bits of its type; False where there are none for it."""
    bits = UNWRITTEN.get(array.dtype.name)
    if bits is None:
        return False
    array.view(f"u{array.dtype.itemsize}").fill(bits)
    return True


def is_unwritten(values: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Return where ``values`` are of memory that nothing wrote. ``dtype`` is the type they had; bfloat16 may have
    become float32.
    """
    bits = UNWRITTEN.get(dtype)
    if bits is None or values.dtype.kind != "f":
        return np.zeros(values.shape, np.bool_)
    if dtype == "bfloat16":
        bits <<= 16
    if values.dtype.name != ("float32" if dtype == "bfloat16" else dtype):
        return np.zeros(values.shape, np.bool_)
    same: Any = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}") == bits
    found: np.ndarray[Any, Any] = same.reshape(values.shape)
    return found
