"""Profile the kernels that a file's inferred call does not launch, by inferred calls of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath

from accelopt_profiling.jobs import ProfileParams
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.problems.inference.inferred import InferParams, InferredProblem
from accelopt_profiling.problems.loading.inferred import APART_CPU_SECONDS, with_inferred
from accelopt_profiling.step_context import StepContext, StepFailedError


def with_unlaunched(
    context: StepContext,
    params: ProfileParams,
    results: list[KernelMeasurement],
    infer: Callable[[StepContext, InferParams], InferredProblem],
    profile: Callable[[StepContext, ProfileParams, str], list[KernelMeasurement]],
) -> list[KernelMeasurement]:
    """Return the measurements of a file without a problem, with those of kernels that its inferred call did not launch:
    the first few are profiled with a call of their own, of the function that ``profile`` gets too. What that does not
    launch either stays as it is."""
    if params.problem is None or params.problem.origin != "inferred" or params.options.extent != "all":
        return results
    measurements = {measurement.name: measurement for measurement in results}
    silent = replace(context, emit=lambda _: None)  # the file's problem is the first one
    until = time.process_time() + APART_CPU_SECONDS
    for kernel in params.kernels:
        seconds = until - time.process_time()
        if seconds <= 0 or not _never_launched(measurements[kernel.name]):
            continue
        with suppress(StepFailedError):
            inferred = infer(silent, InferParams([kernel], params.target, seconds))
            rest = [
                k
                for k in params.kernels
                if k.name in inferred.launched and _never_launched(measurements[k.name])
            ]
            path = PurePosixPath(str(params.problem.path)).with_name(f"{kernel.name}_problem.py")
            problem = replace(params.problem, path=str(path))
            own = replace(params, kernels=rest, problem=problem, input_specs=None)
            if not rest and inferred.remaining:
                measurements[kernel.name] = _with_reason(measurements[kernel.name], inferred.remaining)
            if rest:
                apart = profile(*with_inferred(silent, own, inferred), inferred.entry)
                measurements.update((m.name, m) for m in apart)
    return list(measurements.values())


def _with_reason(measured: KernelMeasurement, why: str) -> KernelMeasurement:
    """Return a measurement without a cost whose finding says what went wrong with a call of its own."""
    message = f"No call of {measured.name} could be inferred: {why.rstrip('.')}."
    findings = [replace(f, message=message) if f.code == "never-launched" else f for f in measured.findings]
    return replace(measured, findings=findings)


def _never_launched(measured: KernelMeasurement) -> bool:
    return any(finding.code == "never-launched" for finding in measured.findings)
