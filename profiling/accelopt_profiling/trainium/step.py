"""Run a file's NKI kernel on the host's Trainium, time it there and check its outputs.

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
from accelopt_profiling.measurement import Correctness, KernelMeasurement
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.quantity import measured
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.trainium.device_run import DeviceRequest, DeviceRun, kernel_alone
from accelopt_profiling.trainium.summary import bound, quantities
from accelopt_profiling.trainium.toolchain import find_toolchain, generation_of, open_device
from accelopt_profiling.trainium.tools import DeviceError
from accelopt_profiling.worker.usercode import user_errors


@dataclass(frozen=True)
class DeviceParams:
    """``kernels`` are the file's; the one that the problem calls is run.

    ``seconds`` bounds each program started.
    """

    kernels: list[Kernel]
    problem: ProblemRef
    target: str
    host: str = "local"
    seed: int = 0
    seconds: float = 180.0


def time_on_trainium(
    context: StepContext, params: DeviceParams, device_folder: Path = Path("/dev")
) -> dict[str, Any]:
    """Return the ``measurement`` of the kernel, all of it measured.

    Its latency, its quantities and the check of the device's outputs are given by kernel name as well, as ``timings``,
    ``counters`` and ``correctness``; the profiler's own fields are ``profile``.

    Raises:
        StepFailedError: there is no device, a tool failed, or the user's code did.
    """
    with user_errors(context):
        problem = load_problem(context, params.problem, None)
        inputs = problem.inputs(params.seed)
        call, arguments = problem.call(inputs)
    folder = context.folder / "device"
    folder.mkdir()
    request = DeviceRequest(
        context.kernel_path,
        call.function,
        arguments=arguments,
        folder=folder,
        target=params.target,
        seconds=params.seconds,
    )
    try:
        kernel = kernel_alone(call, params.kernels)
        toolchain = find_toolchain(os.environ, device_folder=device_folder)
        run = open_device(toolchain, generation_of(kernel)).run(request)
    except DeviceError as failure:
        code = "user-error" if failure.code == "kernel-failed" else failure.code
        raise StepFailedError(StepError(code, str(failure), detail=failure.detail)) from failure
    with user_errors(context):
        correctness = check_outputs(problem, inputs, run.outputs, inputs)
    measurement = device_measurement(
        kernel, run, target=params.target, host=params.host, correctness=correctness
    )
    return {
        "measurement": to_plain(measurement),
        "timings": {kernel.name: to_plain(measurement.latency)},
        "counters": {kernel.name: to_plain(measurement.quantities)},
        "correctness": {kernel.name: to_plain(correctness)},
        "device": params.target,
        "profile": {} if run.summary is None else to_plain(run.summary.fields),
        "notes": run.notes,
    }


def device_measurement(
    kernel: Kernel,
    run: DeviceRun,
    target: str,
    host: str = "local",
    correctness: Correctness | None = None,
    roofline_us: float | None = None,
) -> KernelMeasurement:
    """Return a device run as a measurement of ``kernel``.

    Every number in it is measured.

    ``roofline_us`` gives the percent of peak.
    """
    latency = run.samples.latency
    values = quantities(run.summary) if run.summary is not None else {}
    values["runs"] = measured(run.samples.runs)
    share = None if roofline_us is None or not latency.us else 100 * roofline_us / latency.us
    return KernelMeasurement(
        name=kernel.name, line=kernel.line, dialect="nki", target=target, host=host,
        correctness=correctness or Correctness(), latency=latency, percent_of_peak=share,
        bound=bound(run.summary) if run.summary is not None else None, quantities=values,
        content_hash=kernel.content_hash, stage="timed", toolchain=run.toolchain,
    )  # fmt: skip
