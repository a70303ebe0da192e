"""Finds out the costs that the evaluation of the memory needs, once, and runs it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from accelopt_benchmarks.checkout import EXAMPLES
from accelopt_benchmarks.memory.evaluation import (
    compare,
    evaluation_rows,
    learning_curve,
    record_carried,
    recorded_kernel,
)
from accelopt_benchmarks.result import GoalResult
from accelopt_benchmarks.search.kernels import study_kernels
from accelopt_benchmarks.search.landscape import explored
from accelopt_benchmarks.search.study import StudyPlan, open_world
from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.stderr import say

#: The versions of each kernel whose costs are found out.
TEXTS = 24


async def measure_evaluation(names: Sequence[str], seeds: int, cache: Path | None = None) -> list[GoalResult]:
    """Find out the costs of versions of each kernel (of NKIBench and the Triton examples, or those named), kept in the
    folder ``cache``, and search among them in every way."""
    kernels, subjects = [], []
    with tempfile.TemporaryDirectory(prefix="accelopt-memory-") as folder:
        plan = StudyPlan(cache or Path(folder) / "cache", texts=TEXTS)
        for kernel in study_kernels(Path(folder), EXAMPLES, names):
            async with open_world(kernel, plan) as world:
                record = await recorded_kernel(world, await explored(world, plan.texts))
            what = (
                "nothing faster is known" if record is None else f"{len(record.measured)} versions are known"
            )
            say(f"{kernel.name}: {what}")
            if record is not None:
                kernels.append(record)
                subjects.append(kernel)
        for record, kernel in zip(kernels, subjects, strict=True):
            async with open_world(kernel, plan) as world:
                await record_carried(record, world, [k for k in kernels if k.target == record.target])
            say(f"{record.name}: {len(record.carried)} edits of other kernels fit it or a faster version")
    if len(kernels) < 2:
        raise wrong_input("At least two kernels with faster versions are needed.")
    return evaluation_rows(compare(kernels, seeds), learning_curve(kernels, seeds))
