"""Load the problem of a ``ProblemRef`` in a child process, by its kind."""

from __future__ import annotations

from types import ModuleType

from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step_context import StepContext


def load_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    """Load the problem ``ref`` points to. ``kernel_module`` is the imported kernel file; None loads the
    problem without it (the process that computes the reference never imports a candidate).

    Raises:
        ProblemError, StepFailedError: what is wrong with it and what to do about it.
    """
    if ref.kind == "nkibench":
        from accelopt_profiling.problems.loading.nkibench import load_nkibench_problem

        return load_nkibench_problem(context, ref, kernel_module)
    if ref.kind == "kernelbench":
        from accelopt_profiling.problems.loading.kernelbench import load_kernelbench_problem

        return load_kernelbench_problem(context, ref, kernel_module)
    if ref.kind == "flashinfer":
        from accelopt_profiling.problems.loading.flashinfer import load_flashinfer_problem

        return load_flashinfer_problem(context, ref)
    if ref.kind == "gpumode":
        from accelopt_profiling.problems.loading.gpumode import load_gpumode_problem

        return load_gpumode_problem(context, ref, kernel_module)
    if ref.kind == "tritonbench":
        from accelopt_profiling.problems.loading.tritonbench import load_tritonbench_problem

        return load_tritonbench_problem(context, ref, kernel_module)
    if ref.kind == "recording":
        from accelopt_profiling.problems.loading.recording_problem import load_recording_problem

        return load_recording_problem(context, ref, kernel_module)
    if ref.kind == "selfrun":
        from accelopt_profiling.problems.loading.script_problem import load_script_problem

        return load_script_problem(context, ref, kernel_module)
    from accelopt_profiling.problems.loading.python_problem import load_module_problem

    return load_module_problem(context, ref, kernel_module)
