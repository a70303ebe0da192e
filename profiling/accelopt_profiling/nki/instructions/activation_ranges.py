"""The functions of ScalarE within and beyond the ranges of values for which it computes them.

Beyond them AWS's page nki.api.shared states one value: the sine "extrapolates a cubic", so that the sine of 9.0 is
27.65. That is the cubic around the nearer end of its range. Of the others it says that results may be invalid.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import ACTIVATIONS
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.emulator.machine import running_machine
from accelopt_profiling.nki.operations.table import table

_WORDS = {"pi": math.pi, "-pi": -math.pi, "pi/2": math.pi / 2, "-pi/2": -math.pi / 2}


@cache
def _limits(name: str) -> tuple[np.float32, np.float32]:
    low, high = (_WORDS[t] if t in _WORDS else 2.0 ** int(t[2:]) for t in table()["activations"][name])
    return np.float32(low), np.float32(high)


def on_scalar_engine(name: str, x: Array, line: int, slope: Any = 0) -> Array:
    """Return what ScalarE computes; values beyond its range are told on ``line``, if that is not 0."""
    if name == "prelu":
        return np.where(x > 0, x, x * slope)
    result = ACTIVATIONS[name](x)
    if not line:
        return result
    low, high = _limits(name)
    size = np.abs(x) if name == "reciprocal" else x
    beyond = (size < low) | (size > high)
    if not beyond.any():
        return result
    if name == "sin":
        past = x - np.copysign(np.float32(math.pi), x)
        result = np.where(beyond, past**3 / 6 - past, result).astype(x.dtype)
    _tell(name, float(x[beyond].flat[0]), line)
    return result


def _tell(name: str, value: float, line: int) -> None:
    machine = running_machine()
    if machine is not None:
        low, high = table()["activations"][name]
        inside = f"{low} to {high}" if name != "reciprocal" else f"{low} to {high} and their negatives"
        what = "is a cubic's, far from the sine: use nl.sin" if name == "sin" else "may be invalid"
        machine.diagnostics.report(
            "beyond-range",
            f"ScalarE computes nl.{name} of {inside}; this is {value:.4g}, and its result {what} (nki.api.shared).",
            "warning",
            line,
        )
