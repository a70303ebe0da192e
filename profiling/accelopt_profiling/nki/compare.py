"""Compare a kernel's outputs with the float64 reference, for the profile. (The gate has stricter rules of its own.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from accelopt_profiling.measurement import Correctness
from accelopt_profiling.problems.problem import Tolerance

#: Relative L2 error allowed where the problem names none. float32: the tolerance of NKIBench's gate.
_BY_WIDTH = {4: 2e-5, 2: 1e-2, 1: 1e-1}


def widen(value: Any) -> Any:
    """The value for the reference: floating-point arrays as float64."""
    if isinstance(value, np.ndarray) and (
        value.dtype.kind == "f" or value.dtype.name.startswith(("bfloat", "float8"))
    ):
        return value.astype(np.float64)
    return value


def compare(outputs: Sequence[Any], expected: Sequence[Any], tolerance: Tolerance) -> Correctness:
    """Whether every output is within its relative L2 error of the reference; says where it is worst."""
    if len(outputs) != len(expected):
        return Correctness("failed", f"{len(outputs)} outputs; the reference has {len(expected)}.", 1.0)
    worst = 0.0
    for at, (got, want) in enumerate(zip(outputs, expected, strict=True)):
        what = f"output {at}" if len(outputs) > 1 else "the output"
        got, want = np.asarray(got), np.asarray(want, dtype=np.float64)
        if got.shape != want.shape:
            return Correctness(
                "failed", f"{what} has shape {got.shape}; the reference has {want.shape}.", 1.0
            )
        allowed = (
            tolerance.relative if tolerance.relative is not None else _BY_WIDTH.get(got.dtype.itemsize, 2e-5)
        )
        with np.errstate(invalid="ignore"):
            error = np.abs(got.astype(np.float64) - want)
        flat_error, flat_want = error.reshape(-1), want.reshape(-1)
        wrong = ~np.isfinite(flat_error) & ~(
            (got.reshape(-1) == flat_want) | (np.isnan(flat_want) & np.isnan(got.reshape(-1)))
        )
        if wrong.any():
            place = np.unravel_index(int(np.argmax(wrong)), want.shape)
            value = got[place]
            return Correctness(
                "failed", f"{what} is {value} at {_place(place)}; expected {want[place]:.6g}.", 1.0
            )
        flat_error = np.where(np.isfinite(flat_error), flat_error, 0.0)
        finite = np.where(np.isfinite(flat_want), flat_want, 0.0)
        norm = float(np.sqrt(np.dot(finite, finite)))
        size = float(np.sqrt(np.dot(flat_error, flat_error)))
        bound = allowed * norm + (tolerance.absolute or 0.0) * float(np.sqrt(max(1, want.size)))
        relative = size / norm if norm else size
        if size > bound:
            place = np.unravel_index(int(np.argmax(flat_error)), want.shape)
            detail = f"{what} is off by {relative:.2g} (relative L2; {allowed:g} allowed), most at {_place(place)}: "
            return Correctness("failed", f"{detail}{got[place]:.6g} instead of {want[place]:.6g}.", 1.0)
        worst = max(worst, relative)
    return Correctness("passed", f"relative L2 error {worst:.1e} against the reference in float64", 1.0)


def _place(index: Any) -> str:
    return "[" + ", ".join(str(int(i)) for i in index) + "]"
