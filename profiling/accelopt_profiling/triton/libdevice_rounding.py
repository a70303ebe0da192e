"""The libdevice functions whose names end in a rounding mode: to the nearest, down, up, or toward zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_TOWARD = {"rd": -np.inf, "ru": np.inf, "rz": 0.0}
_ARITHMETIC: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
    "rcp": np.reciprocal, "rsqrt": lambda x: 1 / np.sqrt(x), "fma": lambda x, y, z: x * y + z,
}  # fmt: skip
_TO_INTEGER = {"rn": np.rint, "rd": np.floor, "ru": np.ceil, "rz": np.trunc}
_FLOATS = {"float": np.float32, "double": np.float64}
_INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}


def rounding_functions() -> Iterator[tuple[str, Callable[..., Array]]]:
    """Names (``add_rn``, ``float2int_rd``, ...) and functions."""
    for name, function in _ARITHMETIC.items():
        yield f"{name}_rn", function
        for mode in _TOWARD:
            yield f"{name}_{mode}", _directed(function, mode)
    for a, real in _FLOATS.items():
        for b, whole in _INTEGERS.items():
            for mode, rounded in _TO_INTEGER.items():
                yield f"{a}2{b}_{mode}", lambda x, r=rounded, t=whole: r(x).astype(t)
            for mode in ("rn", *_TOWARD):
                yield f"{b}2{a}_{mode}", lambda x, m=mode, t=real: narrowed(x, t, m)
    for mode in ("rn", *_TOWARD):
        yield f"double2float_{mode}", lambda x, m=mode: narrowed(x, np.float32, m)


def narrowed(exact: Array, to: type[np.floating[Any]], mode: str) -> Array:
    """``exact`` as the neighbouring number of type ``to`` in the direction of ``mode``."""
    near: Array = exact.astype(to)
    if mode == "rn":
        return near
    toward = _TOWARD[mode]
    wide = near.astype(np.longdouble)
    beyond = np.abs(wide) > np.abs(exact) if mode == "rz" else wide > exact if mode == "rd" else wide < exact
    return np.where(beyond, np.nextafter(near, to(toward)), near)


def _directed(function: Callable[..., Array], mode: str) -> Callable[..., Array]:
    def apply(*given: Array) -> Array:
        wide = np.longdouble if given[0].dtype == np.float64 else np.float64
        return narrowed(function(*(x.astype(wide) for x in given)), given[0].dtype.type, mode)

    return apply
