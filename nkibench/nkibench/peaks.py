"""Computes the least time of a task by NKIBench's formulas of its work, which data files hold, and percent of peak.

What work takes at a target's rates is computed as it is for a trace.
"""

from __future__ import annotations

import ast
import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.nki.time_model.hardware import hardware
from accelopt_profiling.nki.time_model.work import PASSES, Work, least_times_us
from nkibench.case import BenchmarkCase
from nkibench.task import Task


class NoPeakError(Exception):
    """There are no published rates for a target."""


@dataclass(frozen=True)
class Peak:
    """The least time in microseconds and what bounds it: "memory", "matmul" or "vector"."""

    us: float
    bound: str

    def percent(self, latency_us: float) -> float:
        """Return the percent of peak of a latency.

        Above 100 the formulas or the latency are wrong; it is said, not hidden.
        """
        return 100 * self.us / latency_us


@cache
def _data() -> dict[str, Any]:
    text = (Path(__file__).parent / "peaks.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def targets() -> list[str]:
    """Return the targets with published rates."""
    return list(_data()["published_geomean"])


def published_geomean(target: str) -> dict[str, float]:
    """Return what AccelOpt reports for hardware: ``baseline`` and ``best`` as fractions of peak."""
    means = _data()["published_geomean"].get(target, {})
    return {name: means[name] for name in ("baseline", "best") if name in means}


def peak_of(task: Task, target: str, values: Mapping[str, int] | None = None, passes: float = PASSES) -> Peak:
    """Return the least time of a task at its published sizes or at ``values``. The formulas are for float32: of a
    version that takes fewer ``passes`` of TensorE for a product, the least time is less.

    Raises:
        NoPeakError: no rates are published for the target.
        ValueError: a value is missing.
    """
    if target not in targets():
        raise NoPeakError(f"NKIBench publishes no rates for {target}; it does for {', '.join(targets())}.")
    sizes = task.values if values is None else values
    work = Work(
        evaluate(task.elements, sizes) * _data()["element_bytes"]["value"],
        evaluate(task.matmul_flops, sizes),
        0,
        evaluate(task.vector_flops, sizes),
    )
    rates = hardware(target)
    times = least_times_us(work, rates) | {"vector": work.operations / rates.vector_gops / 1e3}
    times["matmul"] *= min(1.0, passes / PASSES)
    bound = max(times, key=times.__getitem__)
    return Peak(times[bound], bound)


def peak_of_version(case: BenchmarkCase, target: str, version: KernelMeasurement) -> Peak | None:
    """Return the least time of a case as ``version`` takes products.

    None where no formula or rates are known.
    """
    passes = version.quantities.get("product_passes")
    if case.task is None:
        return None
    try:
        return peak_of(case.task, target, case.values, PASSES if passes is None else passes.value or PASSES)
    except (NoPeakError, ValueError):
        return None


def geometric_mean(numbers: Iterable[float]) -> float | None:
    """Return the geometric mean of positive numbers, None of none."""
    logs = [math.log(n) for n in numbers]
    return math.exp(sum(logs) / len(logs)) if logs else None


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def evaluate(formula: str, values: Mapping[str, int]) -> int:
    """Return the value of ``formula`` for ``values``.

    Raises:
        ValueError: it is no such formula, or it names a value that is not there.
    """
    try:
        return _value(ast.parse(formula, mode="eval").body, values)
    except (SyntaxError, ZeroDivisionError, RecursionError) as error:
        raise ValueError(f"{formula!r} cannot be computed: {error}") from None
    except KeyError as error:
        raise ValueError(
            f"{formula!r} needs {error.args[0]}, which is not among {', '.join(values)}"
        ) from None


def _value(node: ast.expr, values: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left, values), _value(node.right, values))
    raise ValueError(f"{ast.unparse(node)!r} is no sum, product or whole quotient of values")
