"""The step ``gate.device``: run the candidate's kernel on the host's Trainium, on the draws of the gate.

It follows the step that runs the candidate in emulation, before any expected value exists. The kernel runs in a child
process; this one runs none of its code and saves what comes back, for the judge to compare like every other output.
Not yet run on hardware.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from accelopt_profiling.comparison.saved_values import NotCarriedError, digest, save_values
from accelopt_profiling.gate.case_files import (
    case_folder,
    drawn_cases,
    saved_arguments,
    saved_call,
)
from accelopt_profiling.gate.step_schemas import DeviceRunParams, DeviceRunResult
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.step_context import StepContext
from accelopt_profiling.trainium.device_run import DeviceRequest, kernel_alone
from accelopt_profiling.trainium.toolchain import find_toolchain, generation_of, open_device
from accelopt_profiling.trainium.tools import DeviceError
from accelopt_profiling.worker.project_modules import leave_project


def run_on_device(
    context: StepContext, params: DeviceRunParams, device_folder: Path = Path("/dev")
) -> DeviceRunResult:
    """Run the kernel on draws at the problem's own shapes.

    What the device or its tools lack is told as ``unavailable``, what the kernel does wrong there as ``failed``.
    """
    leave_project()  # this process runs none of the candidate's code
    text = context.source.files[context.source.kernel]
    kernels = [k for k in find_kernels(text).kernels if k.dialect == "nki"]
    ran: list[int] = []
    for index in drawn_cases(context, params.cases):
        folder, case_call = case_folder(context, index), saved_call(context, index)
        if len(ran) == params.budget.device_draws:
            break
        if case_call.derived or case_call.altered or not (folder / "outputs").is_dir():
            continue
        call = case_call.call
        arguments = saved_arguments(folder)
        work = context.folder / "device" / str(index)
        work.mkdir(parents=True)
        request = DeviceRequest(
            context.kernel_path,
            call.function,
            arguments=[_as_numpy(a) for a in arguments],
            folder=work,
            target=params.target,
            seconds=params.seconds,
        )
        try:
            kernel = kernel_alone(call, kernels)
            device = open_device(
                find_toolchain(os.environ, device_folder=device_folder), generation_of(kernel)
            )
            outputs = device.outputs(request)
            save_values(folder / "device", outputs)
        except DeviceError as failure:
            if failure.code == "kernel-failed":
                return DeviceRunResult(ran, failed=failure.message)
            return DeviceRunResult(ran, unavailable=str(failure))
        except NotCarriedError as error:
            return DeviceRunResult(ran, failed=f"An output cannot be compared: {error}")
        context.emit({"saved": [index, "device", digest(folder / "device")]})
        ran.append(index)
    return DeviceRunResult(ran, unavailable="" if ran else "no case has values that the problem drew.")


def _as_numpy(value: object) -> object:
    return value.numpy() if hasattr(value, "numpy") and not isinstance(value, np.ndarray) else value
