"""Profiles kernel files of other projects as they are, and compares estimates with published times of Liger-Kernel."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from accelopt_benchmarks.liger import operators, timings
from accelopt_benchmarks.liger.profiles import VERSION, fetch, profile_operators
from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.jobs import MeasureOptions
from accelopt_profiling.profiler import ProfileRequest, profile

TUTORIALS = ("vector_add", "fused_softmax", "matmul", "layer_norm", "attention")
LIGER_DATA = "benchmark/data/all_benchmark_data.csv"

#: Shapes of up to 2**33 elements are allocated, and touched where programs are sampled only.
_MEMORY_GIB = 64


async def files_of_others(examples: Path) -> list[GoalResult]:
    """Profile files that nobody wrote for this program, through the local host: the five in the style of
    Triton's tutorials, and operators of ``liger-kernel``."""
    return [await _tutorials(examples / "tutorials"), await _operators()]


async def _tutorials(folder: Path) -> GoalResult:
    what = "files in the style of Triton's tutorials that profile unedited"
    goal, trouble = f"all {len(TUTORIALS)}", []
    with tempfile.TemporaryDirectory(prefix="accelopt-bench-") as name:
        host = LocalHost()
        try:
            for tutorial in TUTORIALS:
                path = Path(shutil.copy(folder / f"{tutorial}.py", name))
                request = ProfileRequest(
                    examine(path, path.read_text()), {"triton": "h100"}, options=MeasureOptions(detail=False)
                )
                async with aclosing(profile(host, request)) as growing:
                    last = [measurement async for measurement in growing][-1]
                launched = [k for k in last.kernels if k.stage != "traced"]
                findings = [*last.findings, *(f for k in launched for f in k.findings)]
                wrong = [f.message for f in findings if f.severity == "error"]
                if wrong or not launched or any(k.latency.us is None for k in launched):
                    trouble.append(f"{tutorial}: {wrong[0] if wrong else 'no time'}")
        finally:
            await host.close()
    good = len(TUTORIALS) - len(trouble)
    return GoalResult(what, goal, good, "files", not trouble, "; ".join(trouble) or ", ".join(TUTORIALS))


async def _operators() -> GoalResult:
    what, goal = f"operators of liger-kernel {VERSION} that profile unedited and agree with PyTorch", ">= 8"
    try:
        package = await asyncio.to_thread(fetch)
    except RuntimeError as error:
        return not_measured(what, goal, str(error))
    host = LocalHost(environment={**os.environ, "PYTHONPATH": str(package)})
    with tempfile.TemporaryDirectory(prefix="accelopt-bench-") as name:
        try:
            outcomes = [o async for o in profile_operators(host, package, Path(name))]
        finally:
            await host.close()
    failed = [f"{o.operator}: {(o.trouble or [o.correctness])[0]}" for o in outcomes if not o.profiled]
    good = len(outcomes) - len(failed)
    detail = "; ".join(failed) or f"forward and backward: {', '.join(operators.OPERATORS)}"
    return GoalResult(what, goal, good, f"of {len(outcomes)}", good >= 8, detail)


async def liger_times(data: Sequence[Path]) -> list[GoalResult]:
    """Return the estimate beside the times that the Liger-Kernel project published.

    ``data`` holds checkouts.
    """
    what = "Liger-Kernel's published times within -25/+33 % of the estimate, shapes above 40 us"
    goal = ">= 90 %"
    files = [folder / LIGER_DATA for folder in data if (folder / LIGER_DATA).exists()]
    if not files:
        return [not_measured(what, goal, "give a checkout of linkedin/Liger-Kernel with --data")]
    try:
        package = await asyncio.to_thread(fetch)
        rows = await _compared(files[0], package)
    except RuntimeError as error:
        return [not_measured(what, goal, str(error))]
    large = [row for row in rows if row.measured_us > timings.GOAL_ABOVE_US]
    held_out = [row for row in large if (row.kernel, row.target) not in timings.CALIBRATED_ON]
    share, held = timings.share_within_goal(large), timings.share_within_goal(held_out)
    devices = sorted({row.target for row in large})
    outside = [
        f"{row.kernel} {row.target} {row.shape} x{row.ratio:.2f}" for row in large if not row.within_goal
    ]
    detail = (
        f"{len(large)} shapes on {', '.join(devices)}; without the two kernels that constants were calibrated on "
        f"{100 * held:.0f} % of {len(held_out)}; outside: {'; '.join(outside) or 'none'}"
    )
    return [GoalResult(what, goal, 100 * share, "%", share >= 0.9, detail)]


async def _compared(data: Path, package: Path) -> list[timings.PublishedTiming]:
    """Return the comparison in a limited process of its own: it executes the package's host code. Raises
    RuntimeError."""
    command = [sys.executable, "-m", "accelopt_benchmarks.liger.timings", str(data), str(package), "--json"]
    shell = f'ulimit -v {_MEMORY_GIB << 20}; exec "$@"'
    child = await asyncio.create_subprocess_exec(
        "sh", "-c", shell, "sh", *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await child.communicate()
    if child.returncode:
        raise RuntimeError(f"the comparison ended with {child.returncode}: {errors.decode()[-500:].strip()}")
    rows: list[dict[str, Any]] = json.loads(out)
    return [timings.PublishedTiming(**row) for row in rows]
