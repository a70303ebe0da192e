"""Load the problem of a ``ProblemRef`` in a child process."""

from __future__ import annotations

from types import ModuleType

from accelopt_profiling.problems.catalogue import layout_of
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext


def load_problem(context: StepContext, ref: ProblemRef, kernel_module: ModuleType | None) -> Problem:
    """Load the problem ``ref`` points to.

    ``kernel_module`` is the imported kernel file; None loads the problem without it (the process that computes the
    reference never imports a candidate).

    Raises:
        ProblemError, StepFailedError: what is wrong with it and what to do about it.
    """
    return layout_of(ref).load(context, ref, kernel_module)
