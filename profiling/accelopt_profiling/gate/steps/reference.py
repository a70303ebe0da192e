"""The step ``gate.reference``: compute the expected values, after the candidate's process has ended."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from time import process_time
from typing import Any

from accelopt_profiling.comparison.outputs import narrowly_refused
from accelopt_profiling.comparison.reference import ExpectedValues, ReferenceRuns
from accelopt_profiling.comparison.saved_values import (
    NotCarriedError,
    digest,
    link_values,
    load_values,
    save_values,
)
from accelopt_profiling.gate.case_files import (
    INITIAL_FILE,
    PARAMETERS,
    TOLERANCE_FILE,
    case_folder,
    finished,
    problem_errors,
    problem_files,
    saved_call,
)
from accelopt_profiling.gate.observe.emulation import emulation
from accelopt_profiling.gate.observe.hostwork import HostWork, computing_dtype, count_work
from accelopt_profiling.gate.observe.process_state import CallerState
from accelopt_profiling.gate.probes.registry import raw_folders
from accelopt_profiling.gate.step_schemas import (
    CaseCall,
    ReferenceCase,
    ReferenceParams,
    ReferenceResult,
    ReferenceRule,
)
from accelopt_profiling.gate.steps.draw import case_digests
from accelopt_profiling.jobs import StepError
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.call import check_answer
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.loading.sizes import ProblemSizes
from accelopt_profiling.problems.problem import Problem, ProblemError
from accelopt_profiling.step_context import StepContext, StepFailedError

#: Folders of expected values.
_ANSWERS = ("expected", "native", "nearby", "further", "rounding", PARAMETERS)


def reference(context: StepContext, params: ReferenceParams) -> ReferenceResult:
    """Run the problem's reference on every drawn case, in the inputs' own precision and in float64.

    Raises:
        StepFailedError: the reference raised, or returned nothing; or the candidate left files where the answers go.
    """
    for index in range(params.cases):
        folder = case_folder(context, index)
        if any((folder / name).exists() for name in _ANSWERS) or any(folder.glob("finished*")):
            raise StepFailedError(
                StepError("tampered", "The candidate wrote into the folder of the expected values.")
            )
    with problem_files(context, params.source) as own, emulation(params.dialect, params.target):
        observer = HostWork(str((own.folder / "src").resolve()) + os.sep)
        observer.marking = False
        with problem_errors(own, "loading the problem: "):
            problem = load_problem(own, params.problem, None)
        precision = _Precision(problem, observer)
        work = HostWork()
        cases: list[ReferenceCase] = []
        for index in range(params.cases):
            if (case_folder(context, index) / "inputs").is_dir():
                started = process_time()
                case = _one(context, own, problem=problem, index=index, work=work, precision=precision)
                cases.append(replace(case, busy=process_time() - started))
        file = context.folder / "gate" / TOLERANCE_FILE
        file.unlink(missing_ok=True)
        # topk and sort may name any of equal elements; an argmax that takes the first is documented to
        rule = ReferenceRule(problem.tolerance, "order" not in work.elements)
        file.write_text(json.dumps(to_plain(rule)), encoding="utf-8")
        one = None if problem.rearranges else problem.returns_one
        return ReferenceResult(
            problem.tolerance,
            cases,
            work=work.elements,
            changed=sorted(precision.caller.changed),
            returns_one=one,
        )


class _Precision:
    """Finds out in which precision a reference computes that returns less than float64 for inputs in float64: once,
    by observing one run.
    """

    def __init__(self, problem: Problem, observer: HostWork) -> None:
        self._problem, self._observer = problem, observer
        self._computed: dict[str, str | None] = {}
        self.caller = CallerState()

    def stated(self, runs: ReferenceRuns) -> ExpectedValues:
        """Return the expected values, with the precision in which they were computed."""
        expected = runs.expected
        if expected.precision in ("float64", "exact") or expected.note:
            return expected
        if expected.precision not in self._computed:
            dtype = computing_dtype(self._problem, runs.widened(), self._observer)
            self._computed[expected.precision] = dtype
        computed = self._computed[expected.precision]
        if computed == "float64":
            return replace(expected, precision=f"float64, rounded to {expected.precision}")
        if computed is None:
            return expected
        note = f"The reference computes in {computed} even when its inputs are float64; its values are no more exact."
        return replace(expected, note=note)


def _one(
    context: StepContext,
    own: StepContext,
    problem: Problem,
    index: int,
    work: HostWork,
    precision: _Precision,
) -> ReferenceCase:
    digests = case_digests(context, index)
    case_call = saved_call(context, index)
    with ProblemSizes(problem).at(case_call.sizes).applied():
        return _at_its_sizes(
            context,
            own,
            problem=problem,
            case_call=case_call,
            index=index,
            work=work,
            precision=precision,
            digests=digests,
        )


def _at_its_sizes(
    context: StepContext,
    own: StepContext,
    problem: Problem,
    case_call: CaseCall,
    index: int,
    work: HostWork,
    precision: _Precision,
    digests: list[str],
) -> ReferenceCase:
    folder = case_folder(context, index)
    has_parameters = case_call.call.parameters and not (folder / INITIAL_FILE).exists()
    problem.redrawn = case_call.call if has_parameters else None
    runs = ReferenceRuns(problem, lambda: load_values(folder / "inputs"), case_call.written)
    try:
        with problem_errors(own, "the reference: "):
            with precision.caller.around():
                native = runs.native
            if not native:
                raise ProblemError("problem-empty", "The problem has no reference.")
            if index == 0:
                check_answer(native)
        expected = precision.stated(runs)
        _save(folder / "native", native)
        _save(folder / "expected", expected.values)
        if not runs.large or _is_narrowly_refused(folder, runs):
            for name, values in runs.nearby.items():
                _save(folder / name, values)
        if case_call.twice and problem.model is not None:
            _save(folder / PARAMETERS, problem.parameters())
    except StepFailedError as failed:
        refused = case_call.derived or (case_call.altered and failed.error.code == "problem-raised")
        if not refused or failed.error.code == "tampered":
            raise
        return ReferenceCase(index, "", digests, unusable=failed.error.message[:300])
    if case_call.twice:
        count_work(problem, load_values(folder / "inputs"), work)
    fault = ""
    if (folder / "outputs").is_dir() and problem.rearranges:
        try:
            fault = _finish(problem, folder, native)
        except ProblemError:
            raise
        except Exception as error:  # outputs of any shape or kind meet the problem's own code here
            fault = f"{type(error).__name__}: {error}"
    return ReferenceCase(index, expected.precision, digests=digests, note=expected.note, layout_fault=fault)


def _is_narrowly_refused(folder: Any, runs: ReferenceRuns) -> bool:
    try:
        return narrowly_refused(runs, load_values(folder / "outputs"))
    except Exception:  # the problem's own code meets outputs of any kind here; the comparison names the fault
        return False


def _finish(problem: Problem, folder: Any, native: list[Any]) -> str:
    """Bring the candidate's raw outputs into the reference's layout, by the problem's own code."""
    first = digest(folder / "outputs")
    for raw in raw_folders(folder):
        outputs = load_values(folder / raw)
        try:
            changed = problem.finish(outputs, native)
        except Exception:
            if raw == "idle" or raw.startswith("original"):
                continue
            raise
        if changed is not outputs:
            save_values(folder / finished(raw), changed)
            if raw != "outputs" and digest(folder / raw) == first:
                link_values(folder / finished(raw), folder / finished("outputs"))
    return ""


def _save(folder: Any, values: list[Any]) -> None:
    try:
        save_values(folder, values)
    except NotCarriedError as error:
        message = f"The reference's result cannot be compared: {error}."
        raise StepFailedError(StepError("problem-invalid", message)) from error
    except FileExistsError:
        raise StepFailedError(
            StepError("tampered", "The candidate wrote into the folder of the expected values.")
        ) from None
