"""Load a problem inside a child process."""

from __future__ import annotations

from types import ModuleType

from accelopt_profiling.problems.problem import Problem, ProblemError
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.worker.step import StepContext


def load_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    """Load the problem ``ref`` points to. ``kernel_module`` is the imported kernel file; None loads the problem
    without it (the process that computes the reference never imports a candidate).

    Raises:
        ProblemError, StepFailed: what is wrong with it and what to do about it.
    """
    if ref.kind == "module":
        from accelopt_profiling.problems.module import load_module_problem

        return load_module_problem(context, ref, kernel_module)
    raise ProblemError("problem-invalid", f"Problems of the kind {ref.kind} cannot be loaded.")
