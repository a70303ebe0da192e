"""The step ``gate.plan``: decide how much of each case is interpreted, from what the original takes. It runs before the
candidate, so that nothing the candidate does, and no clock, has a say in it.
"""

from __future__ import annotations

import json

from accelopt_profiling.comparison.saved_values import load_values
from accelopt_profiling.gate.observe.emulation import emulation, estimated_work
from accelopt_profiling.gate.observe.interpretation import MOST_WORK, case_work
from accelopt_profiling.gate.step_schemas import CaseCall, CasePlan, PlanParams, PlanResult
from accelopt_profiling.gate.steps.case_files import PLAN_FILE, case_folder, problem_errors, problem_files
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.loading.call import perform
from accelopt_profiling.worker.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module, user_errors


def plan(context: StepContext, params: PlanParams) -> PlanResult:
    """Estimate the work of every case, and save the plan for the candidate's process.

    Raises:
        StepFailedError: the original cannot even be loaded.
    """
    cases: list[CasePlan] = []
    lanes: list[str] = []
    with problem_files(context, params.source) as own:
        with emulation(params.dialect, params.target), problem_errors(own, "loading the original: "):
            module = load_module(own)
        known: dict[str, int] = {}
        for index in range(params.cases):
            folder = case_folder(context, index)
            if not (folder / "call").is_dir():
                continue
            case_call = from_plain(CaseCall, load_values(folder / "call")[0])
            with emulation(params.dialect, params.target):
                arguments = load_values(
                    folder / ("arguments" if (folder / "arguments").is_dir() else "inputs")
                )
            alike = str([getattr(a, "shape", a) for a in arguments])
            if alike not in known:
                with estimated_work(params.target, MOST_WORK) as (work, seen):
                    try:
                        with user_errors(own):
                            perform(module, case_call.call, arguments, own.source.kernel)
                    except StepFailedError:  # then it is no measure; the candidate is interpreted whole
                        work.clear()
                    lanes += seen.lanes()
                known[alike] = sum(work)
            most = case_work(index, params.interpret_work)
            if known[alike] > most and not case_call.derived:
                cases.append(CasePlan(index, known[alike], most / known[alike]))
    made = PlanResult(params.seed, cases, sorted(set(lanes)))
    (context.folder / "gate" / PLAN_FILE).write_text(json.dumps(to_plain(made)), encoding="utf-8")
    return made
