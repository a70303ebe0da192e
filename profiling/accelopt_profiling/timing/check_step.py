"""The step ``time.check``: compare outputs of timed runs with the reference, in a process that has run no candidate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from accelopt_profiling.folder_tree import remove_tree
from accelopt_profiling.jobs import StepError
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.timing.inputs import on_device
from accelopt_profiling.timing.kept_outputs import FOLDER
from accelopt_profiling.worker.usercode import load_module, problem_errors, user_errors


@dataclass(frozen=True)
class CheckTimedParams:
    """``problem`` and ``seed`` as they were for the step that timed.

    ``original`` is a file of the job: a problem that is written into the kernel file is taken from it, as a candidate
    must not bring its own.
    """

    problem: ProblemRef
    seed: int = 0
    original: str | None = None


@dataclass(frozen=True)
class CheckedRuns:
    """``runs`` were compared, and ``wrong`` says in words what is wrong with the first wrong one; "" if none is.

    ``unknown`` is why nothing could be said of the others.
    """

    runs: int = 0
    wrong: str = ""
    unknown: str = ""


def check_timed(context: StepContext, params: CheckTimedParams) -> CheckedRuns:
    """Compare the kept outputs of the step before with the problem's reference on the same values.

    Raises:
        StepFailedError: the problem cannot be loaded or raised, or what was kept cannot be read.
    """
    from accelopt_profiling.comparison.outputs import OutputCheck  # brings NumPy
    from accelopt_profiling.comparison.saved_values import load_values

    within = params.problem.path in (None, context.source.kernel)
    with user_errors(context):
        module = load_module(context, params.original) if within and params.original else None
        problem = load_problem(context, params.problem, module)
    checked = 0
    checks: dict[int, OutputCheck] = {}
    for folder in sorted((context.folder / FOLDER).glob("*-*")):
        try:
            run, values = (int(part) for part in folder.name.split("-"))
            outputs = load_values(folder)
        except ValueError as error:
            raise StepFailedError(
                StepError("tampered", f"Outputs of a timed run cannot be read: {error}.")
            ) from None
        if values not in checks:
            checks[values] = OutputCheck(problem, partial(_drawn, context, problem, params.seed + values), [])
        with problem_errors(context, "reference"):
            verdict = checks[values].check(outputs)
        if verdict.status == "not checked":
            return CheckedRuns(checked, unknown=verdict.detail)
        checked += 1
        if verdict.status == "failed":
            return CheckedRuns(checked, f"Run {run + 1} of the timing: {verdict.detail}")
    remove_tree(context.folder / FOLDER)
    return CheckedRuns(checked, unknown="" if checked else "No outputs of timed runs were kept.")


def _drawn(context: StepContext, problem: Problem, seed: int) -> list[Any]:
    with problem_errors(context, "get_inputs"):
        drawn: list[Any] = on_device(problem.inputs(seed))
    return drawn
