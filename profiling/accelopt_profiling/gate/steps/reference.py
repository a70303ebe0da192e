"""The step ``gate.reference``: compute the expected values, after the candidate's process has ended."""

from __future__ import annotations

import json
from typing import Any

from accelopt_profiling.comparison.reference import ReferenceRuns
from accelopt_profiling.comparison.saved_values import NotCarried, load_values, save_values
from accelopt_profiling.gate.inputs.draw import case_digests
from accelopt_profiling.gate.observe.emulation import emulation
from accelopt_profiling.gate.observe.hostwork import HostWork, count_work
from accelopt_profiling.gate.step_schemas import CaseCall, ReferenceCase, ReferenceParams, ReferenceResult
from accelopt_profiling.gate.steps.case_files import (
    FINISHED,
    RAW,
    TOLERANCE_FILE,
    case_folder,
    problem_errors,
    problem_files,
)
from accelopt_profiling.jobs import StepError
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.loading.call import check_answer
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.problem import Problem, ProblemError
from accelopt_profiling.worker.step_context import StepContext, StepFailedError


def reference(context: StepContext, params: ReferenceParams) -> ReferenceResult:
    """Run the problem's reference on every drawn case, in the inputs' own precision and in float64.

    Raises:
        StepFailedError: the reference raised, or returned nothing; or the candidate left files where the answers go.
    """
    for index in range(params.cases):
        for name in ("expected", "native", "nearby", "further", *FINISHED.values()):
            if (case_folder(context, index) / name).exists():
                raise StepFailedError(
                    StepError("tampered", "The candidate wrote into the folder of the expected values.")
                )
    with problem_files(context, params.source) as own, emulation(params.dialect, params.target):
        with problem_errors(own, "loading the problem: "):
            problem = load_problem(own, params.problem, None)
        work = HostWork()
        cases = [
            _one(context, own, problem, index, work)
            for index in range(params.cases)
            if (case_folder(context, index) / "inputs").is_dir()
        ]
        file = context.folder / "gate" / TOLERANCE_FILE
        file.unlink(missing_ok=True)
        file.write_text(json.dumps(to_plain(problem.tolerance)), encoding="utf-8")
        return ReferenceResult(problem.tolerance, cases, work.elements)


def _one(
    context: StepContext, own: StepContext, problem: Problem, index: int, work: HostWork
) -> ReferenceCase:
    folder = case_folder(context, index)
    context.emit({"reference": index})
    digests = case_digests(context, index)
    asked = from_plain(CaseCall, load_values(folder / "call")[0])
    runs = ReferenceRuns(problem, lambda: load_values(folder / "inputs"), asked.written)
    try:
        with problem_errors(own, "the reference: "):
            native = runs.native
            if not native:
                raise ProblemError("problem-empty", "The problem has no reference.")
            if index == 0:
                check_answer(native)
        expected = runs.expected
        _save(folder / "native", native)
        _save(folder / "expected", expected.values)
        for name, values in runs.nearby.items():
            _save(folder / name, values)
    except StepFailedError as failed:
        refused = asked.derived or (asked.altered and failed.error.code == "problem-raised")
        if not refused or failed.error.code == "tampered":
            raise
        return ReferenceCase(index, "", digests, unusable=failed.error.message[:300])
    if asked.twice:
        count_work(problem, load_values(folder / "inputs"), work)
    fault = ""
    if (folder / "outputs").is_dir() and getattr(problem, "rearranges", False):
        try:
            fault = _finish(problem, folder, native)
        except ProblemError:
            raise
        except Exception as error:  # outputs of any shape or kind meet the problem's own code here
            fault = f"{type(error).__name__}: {error}"
    return ReferenceCase(index, expected.precision, digests, expected.note, fault)


def _finish(problem: Problem, folder: Any, native: list[Any]) -> str:
    """Bring the candidate's raw outputs into the reference's layout, by the problem's own code."""
    for raw in RAW:
        finished = FINISHED[raw]
        if not (folder / raw).is_dir():
            continue
        outputs = load_values(folder / raw)
        try:
            changed = problem.finish(outputs, native)
        except Exception:
            if raw in ("idle", "original"):
                continue
            raise
        if changed is not outputs:
            save_values(folder / finished, changed)
    return ""


def _save(folder: Any, values: list[Any]) -> None:
    try:
        save_values(folder, values)
    except NotCarried as error:
        message = f"The reference's result cannot be compared: {error}."
        raise StepFailedError(StepError("problem-invalid", message)) from error
    except FileExistsError:
        raise StepFailedError(
            StepError("tampered", "The candidate wrote into the folder of the expected values.")
        ) from None
