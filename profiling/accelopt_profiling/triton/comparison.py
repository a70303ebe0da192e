"""Compare what the sampled programs computed with the problem's reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from accelopt_profiling.measurement import Correctness
from accelopt_profiling.problems.problem import Tolerance
from accelopt_profiling.triton.interpreter.coverage import Coverage

#: Relative L2 error that rounding of the output type and of one long sum explains; the gate has its own, finer rules.
RELATIVE_ERROR = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.float16: 5e-3,
    torch.bfloat16: 3e-2,
    torch.float8_e4m3fn: 0.1,
    torch.float8_e5m2: 0.2,
}


def tensors(values: Sequence[Any]) -> list[Any]:
    """The tensors of a nested list of outputs, in order; numbers become tensors."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found.extend(tensors(value))
        elif isinstance(value, dict):
            found.extend(tensors(list(value.values())))
        elif isinstance(value, torch.Tensor):
            found.append(value.detach())
        elif isinstance(value, (int, float, bool)):
            found.append(torch.tensor(value))
    return found


def compare(
    outputs: Sequence[Any], expected: Sequence[Any], coverage: Coverage, tolerance: Tolerance
) -> Correctness:
    """Whether the known elements of ``outputs`` agree with ``expected``; ``checked`` is their share of all elements."""
    got, wanted = tensors(outputs), tensors(expected)
    if len(got) != len(wanted):
        return Correctness(
            "failed", f"The kernel returns {len(got)} tensors, the reference {len(wanted)}.", 0.0
        )
    compared = total = 0
    worst = 0.0
    for index, (out, ref) in enumerate(zip(got, wanted, strict=True)):
        name = f"Output {index}" if len(got) > 1 else "The output"
        if out.shape != ref.shape:
            shapes = f"{tuple(out.shape)}, the reference {tuple(ref.shape)}"
            return Correctness("failed", f"{name} has the shape {shapes}.", 0.0)
        total += out.numel()
        known = _known(out, coverage)
        a, b = (out.reshape(-1), ref.reshape(-1)) if known is None else (out[known], ref[known])
        compared += a.numel()
        if a.numel():
            problem, error = _difference(a, b, tolerance)
            worst = max(worst, error)
            if problem:
                return Correctness("failed", f"{name} {problem}.", compared / max(1, total))
    if total and not compared:
        return Correctness("not checked", "The sampled programs fixed no element of the output.", 0.0)
    share = compared / total if total else 1.0
    return Correctness(
        "passed", f"relative error {worst:.1e}, {100 * share:.3g} % of the output checked", share
    )


def _known(out: Any, coverage: Coverage) -> Any:
    known = coverage.known(out)
    if known is not None or not coverage.sampled:
        return known
    # Computed by PyTorch from what kernels left: unknown floats are NaN and show, integers cannot show it.
    if out.is_floating_point():
        return ~out.isnan()
    return torch.zeros(out.shape, dtype=torch.bool)


def _difference(out: Any, ref: Any, tolerance: Tolerance) -> tuple[str, float]:
    """What is wrong, or "", and the relative L2 error, for two flat tensors."""
    if not out.is_floating_point() and not out.is_complex():
        wrong = int((out.to(torch.int64) != ref.to(torch.int64)).sum())
        return (
            f"differs from the reference in {wrong} of {out.numel()} compared elements" if wrong else ""
        ), 0.0
    limit = tolerance.relative if tolerance.relative is not None else RELATIVE_ERROR.get(out.dtype, 1e-4)
    a, b = out.to(torch.float64), ref.to(torch.float64)
    finite = torch.isfinite(b)
    odd = ~finite & ~((a == b) | (a.isnan() & b.isnan()))
    broken = finite & ~torch.isfinite(a)
    if bool(odd.any()) or bool(broken.any()):
        what = "NaN" if bool(a[broken].isnan().any()) else "not finite" if bool(broken.any()) else "finite"
        count = int(odd.sum()) + int(broken.sum())
        return f"is {what} in {count} compared elements where the reference is not", math.inf
    a, b = a[finite], b[finite]
    slack = (tolerance.absolute or 0.0) * math.sqrt(max(1, a.numel()))
    norm = float(b.norm())
    distance = float((a - b).norm())
    error = distance / norm if norm else (math.inf if distance else 0.0)
    if distance > limit * norm + slack:
        worst = int((a - b).abs().argmax())
        example = f"{float(a[worst]):.6g} where the reference is {float(b[worst]):.6g}"
        return (
            f"differs from the reference: relative error {error:.2g} (allowed {limit:.2g}), for example {example}",
            error,
        )
    return "", error
