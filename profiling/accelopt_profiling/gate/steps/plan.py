"""The step ``gate.plan``: decide how much of each case is interpreted, from what the original takes. It runs before the
candidate, so that nothing the candidate does, and no clock, has a say in it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from types import ModuleType

from accelopt_profiling.folder_tree import remove_tree
from accelopt_profiling.gate.observe.emulation import emulation, estimated_work
from accelopt_profiling.gate.observe.interpretation import (
    ENOUGH,
    known_share,
    of_case,
    planned_share,
)
from accelopt_profiling.gate.step_schemas import CasePlan, PlanParams, PlanResult
from accelopt_profiling.gate.steps.case_files import (
    PLAN_FILE,
    case_folder,
    drawn_cases,
    own_check_of,
    problem_errors,
    problem_files,
    saved_arguments,
    saved_call,
)
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.loading.call import perform
from accelopt_profiling.worker.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module, user_errors


def plan(context: StepContext, params: PlanParams) -> PlanResult:
    """Estimate the work of every case, and save the plan for the candidate's process.

    Raises:
        StepFailedError: the original cannot even be loaded.
    """
    budget = params.budget
    cases: list[CasePlan] = []
    lanes: list[str] = []
    with problem_files(context, params.source) as own:
        with emulation(params.dialect, params.target), problem_errors(own, "loading the original: "):
            module = load_module(own, own_check=own_check_of(context, params.cases))
        known: dict[str, int] = {}
        for index in drawn_cases(context, params.cases):
            folder = case_folder(context, index)
            case_call = saved_call(context, index)
            with emulation(params.dialect, params.target):
                arguments = saved_arguments(folder)
            alike = str([getattr(a, "shape", a) for a in arguments])
            if alike not in known:
                with estimated_work(params.target, budget.most_work) as (work, seen):
                    try:
                        with user_errors(own):
                            perform(module, case_call.call, arguments, own.source.kernel)
                    except StepFailedError:  # then it is no measure; the candidate is interpreted whole
                        work.clear()
                    lanes += seen.lanes()
                known[alike] = sum(work)
            most = budget.case_work(index)
            if known[alike] > most and not case_call.derived:
                cases.append(CasePlan(index, known[alike], most / known[alike]))
        made = PlanResult(params.seed, cases, sorted(set(lanes)))
        if (
            cases
            and cases[0].index == 0
            and cases[0].work > budget.shared_work
            and _stand_ins(context, params)
        ):
            left_out = [0] if _too_little_known(context, params, own, module, made) else []
            made = replace(made, left_out=left_out)
    unneeded = made.left_out or _stand_ins(context, params)
    for index in unneeded:  # nobody runs it, nor computes what it expects
        remove_tree(case_folder(context, index))
    (context.folder / "gate" / PLAN_FILE).write_text(json.dumps(to_plain(made)), encoding="utf-8")
    return made


def _stand_ins(context: StepContext, params: PlanParams) -> list[int]:
    """Return the case at smaller sizes that was drawn to stand for the first one, where there is one."""
    return [n for n in drawn_cases(context, params.cases) if saved_call(context, n).reduced]


def _too_little_known(
    context: StepContext, params: PlanParams, own: StepContext, module: ModuleType, made: PlanResult
) -> bool:
    """Run the original's share of the first case, and check whether its launches leave too little known: they read
    what programs of others left that were not run, so that no share tells anything.
    """
    folder, case_call = case_folder(context, 0), saved_call(context, 0)
    with emulation(params.dialect, params.target):
        arguments = saved_arguments(folder)
    try:
        with (
            emulation(params.dialect, params.target, of_case(made, 0, params.budget)) as seen,
            user_errors(own),
        ):
            outputs = perform(module, case_call.call, arguments, own.source.kernel)
            return known_share(outputs, seen) < ENOUGH * planned_share(made, 0)
    except StepFailedError:  # it says more where the original runs to be compared
        return False
