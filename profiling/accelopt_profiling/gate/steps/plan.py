"""The step ``gate.plan``: decide how much of each case is interpreted, from what the original takes. It runs before the
candidate, so that nothing the candidate does, and no clock, has a say in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

from accelopt_profiling.folder_tree import remove_tree
from accelopt_profiling.gate.case_files import (
    PLAN_FILE,
    case_folder,
    drawn_cases,
    own_check_of,
    problem_errors,
    problem_files,
    saved_arguments,
    saved_call,
)
from accelopt_profiling.gate.observe.emulation import TritonSeen, emulation, estimated_work
from accelopt_profiling.gate.observe.interpretation import (
    ENOUGH,
    known_share,
    of_case,
    planned_share,
    whole,
)
from accelopt_profiling.gate.step_schemas import CasePlan, PlanParams, PlanResult
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.call import perform
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module, user_errors


def plan(context: StepContext, params: PlanParams) -> PlanResult:
    """Estimate the work of every case, and save the plan for the candidate's process.

    Raises:
        StepFailedError: the original cannot even be loaded.
    """
    budget = params.budget
    cases: list[CasePlan] = []
    too_large: list[int] = []
    lanes: list[str] = []
    with problem_files(context, params.source) as own:
        with emulation(params.dialect, params.target), problem_errors(own, "loading the original: "):
            module = load_module(own, own_check=own_check_of(context, params.cases))
        work_of: dict[str, int | None] = {}
        for index in drawn_cases(context, params.cases):
            folder = case_folder(context, index)
            case_call = saved_call(context, index)
            with emulation(params.dialect, params.target):
                arguments = saved_arguments(folder)
            optional = case_call.derived and not case_call.reduced
            alike = str([optional, *(getattr(a, "shape", a) for a in arguments)])
            most = budget.case_work(index)
            if alike not in work_of:
                call = partial(perform, module, case_call.call, arguments, own.source.kernel)
                work_of[alike], read = _work(params, own, call=call, most=most, optional=optional)
                lanes += read
            work = work_of[alike]
            if work is None:
                too_large.append(index)
            elif work > most and not case_call.derived:
                cases.append(CasePlan(index, work, most / work))
        result = PlanResult(params.seed, cases, sorted(set(lanes)), too_large)
        if (
            cases
            and cases[0].index == 0
            and cases[0].work > budget.shared_work
            and _stand_ins(context, params)
        ):
            left_out = (
                [0] if _too_little_known(context, params, own=own, module=module, result=result) else []
            )
            result = replace(result, left_out=[*left_out, *too_large])
    unneeded = result.left_out if 0 in result.left_out else [*too_large, *_stand_ins(context, params)]
    for index in unneeded:  # nobody runs it, nor computes what it expects
        remove_tree(case_folder(context, index))
    (context.folder / "gate" / PLAN_FILE).write_text(json.dumps(to_plain(result)), encoding="utf-8")
    return result


def _work(
    params: PlanParams, own: StepContext, call: Callable[[], Any], most: int, optional: bool
) -> tuple[int | None, list[str]]:
    """Return what interpreting a call whole takes, and the tensors of which lanes read what others write: from one
    program of each launch. Where that takes more than ``most``, it may wait for another one, and all are run in their
    order. None, for an ``optional`` case, one at sizes of the gate's own, where they take more too.
    """
    work, lanes, ended = _estimated(params, own, call, most)
    if not ended:
        return work, lanes
    plan = replace(whole(params.budget), most=most)
    with emulation(params.dialect, params.target, plan) as observation:
        assert isinstance(observation, TritonSeen)
        with suppress(StepFailedError), user_errors(own):
            call()
        if not observation.exceeds_work():
            return observation.work(), lanes
    if optional:
        return None, lanes
    return _estimated(params, own, call, params.budget.most_work)[:2]


def _estimated(
    params: PlanParams, own: StepContext, call: Callable[[], Any], most: int
) -> tuple[int, list[str], bool]:
    """Return work and lanes of a call from one program of each launch, and whether these took more than ``most``."""
    with estimated_work(params.target, most) as (work, observation):
        try:
            with user_errors(own):
                call()
        except StepFailedError:  # then it is no measure; the candidate is interpreted whole
            work.clear()
        return sum(work), observation.lanes(), observation.exceeds_work()


def _stand_ins(context: StepContext, params: PlanParams) -> list[int]:
    """Return the case at smaller sizes that was drawn to stand for the first one, where there is one."""
    return [n for n in drawn_cases(context, params.cases) if saved_call(context, n).reduced]


def _too_little_known(
    context: StepContext, params: PlanParams, own: StepContext, module: ModuleType, result: PlanResult
) -> bool:
    """Run the original's share of the first case, and check whether its launches leave too little known: they read
    what programs of others left that were not run, so that no share tells anything.
    """
    folder, case_call = case_folder(context, 0), saved_call(context, 0)
    with emulation(params.dialect, params.target):
        arguments = saved_arguments(folder)
    try:
        with (
            emulation(params.dialect, params.target, of_case(result, 0, params.budget)) as observation,
            user_errors(own),
        ):
            outputs = perform(module, case_call.call, arguments, own.source.kernel)
            return known_share(outputs, observation) < ENOUGH * planned_share(result, 0)
    except StepFailedError:  # it says more where the original runs to be compared
        return False
