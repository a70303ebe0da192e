"""The step that runs a file's NKI kernel on the host's Trainium, times it and checks what it returned there.

Not yet run on hardware.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.comparison.outputs import check_outputs
from accelopt_profiling.jobs import StepError
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.trainium.failure import DeviceFailure
from accelopt_profiling.trainium.measurement import device_measurement
from accelopt_profiling.trainium.request import DeviceRequest
from accelopt_profiling.trainium.toolchain import find_toolchain, open_device
from accelopt_profiling.worker.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import user_errors


@dataclass(frozen=True)
class DeviceParams:
    """``kernels`` are the file's; the one that the problem calls is run. ``seconds`` bounds each program started."""

    kernels: list[Kernel]
    problem: ProblemRef
    target: str
    host: str = "local"
    seed: int = 0
    seconds: float = 180.0


def time_on_trainium(
    context: StepContext, params: DeviceParams, device_folder: Path = Path("/dev")
) -> dict[str, Any]:
    """The ``measurement`` of the kernel, everything in it measured; its latency and quantities also by kernel, as
    ``timings`` and ``counters``; and the profiler's own fields as ``profile``.

    Raises:
        StepFailedError: there is no device, a tool failed, or the user's code did.
    """
    with user_errors(context):
        problem = load_problem(context, params.problem, None)
        inputs = problem.inputs(params.seed)
        call, arguments = problem.call(inputs)
    kernel = next((k for k in params.kernels if k.name == call.function), None)
    if kernel is None or call.style != "returns":
        raise StepFailedError(
            StepError(
                "unsupported", f"{call.function} is no NKI kernel of the file, so it cannot be run alone."
            )
        )
    folder = context.folder / "device"
    folder.mkdir()
    request = DeviceRequest(
        context.kernel_path, call.function, arguments, folder, params.target, seconds=params.seconds
    )
    try:
        run = open_device(find_toolchain(os.environ, device_folder=device_folder)).run(request)
    except DeviceFailure as failure:
        code = "user-error" if failure.code == "kernel-failed" else failure.code
        raise StepFailedError(StepError(code, str(failure), detail=failure.detail)) from failure
    with user_errors(context):
        correctness = check_outputs(problem, inputs, run.outputs, inputs)
    found = device_measurement(kernel, run, params.target, params.host, correctness)
    return {
        "measurement": to_plain(found),
        "timings": {kernel.name: to_plain(found.latency)},
        "counters": {kernel.name: to_plain(found.quantities)},
        "device": params.target,
        "profile": {} if run.summary is None else to_plain(run.summary.fields),
        "notes": run.notes,
    }
