"""The original kernel as the reference of a problem that has none of its own."""

from __future__ import annotations

from functools import cache, partial
from types import ModuleType

from accelopt_profiling.problems.loading.call import run_problem
from accelopt_profiling.problems.problem import Problem, no_reference
from accelopt_profiling.worker.step_context import StepContext
from accelopt_profiling.worker.usercode import load_module


def compare_with_original(
    problem: Problem, context: StepContext, kernel_module: ModuleType | None
) -> Problem:
    """Let the original kernel, imported when it is first asked, be the problem's reference; there is none where the
    measured ``kernel_module`` is the original itself. Returns the problem.
    """
    original = cache(partial(load_module, context))
    problem.own_reference = False
    problem.reference = (
        (lambda inputs: run_problem(problem, original(), inputs)) if kernel_module is None else no_reference
    )
    return problem
