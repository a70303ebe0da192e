"""Decide how much of a Triton case is interpreted: figures of work, the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import arrays_of
from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.observe.emulation import Seen
from accelopt_profiling.gate.step_schemas import PlanResult
from accelopt_profiling.triton.interpreter.sampling import InterpretationPlan, ProgramDraw

#: Of the planned share of the output, so much must be checked: what the programs write differs in size.
ENOUGH = 0.5


def whole(budget: GateBudget) -> InterpretationPlan:
    """Return the plan of a case of which every program is interpreted."""
    return InterpretationPlan(ProgramDraw(), budget.most_work)


def of_case(plan: PlanResult | None, index: int, budget: GateBudget) -> InterpretationPlan:
    """Return how much of a case is interpreted.

    Where no original was asked (``plan`` is None), what the launches themselves take decides.
    """
    most, small = budget.most_work, budget.small_work
    if plan is None:
        return InterpretationPlan(ProgramDraw(0.0, 0, index), most, small, budget.case_work(index))
    share = planned_share(plan, index)
    return InterpretationPlan(ProgramDraw(share, plan.seed, index), most, small if share < 1.0 else 0)


def planned_share(plan: PlanResult | None, index: int) -> float:
    """Return the share of a case that was planned to be interpreted before the candidate ran; 0 without a plan."""
    if plan is None:
        return 0.0
    return next((case.share for case in plan.cases if case.index == index), 1.0)


def known_share(outputs: list[Any], observation: Seen) -> float:
    """Return the share of the elements of ``outputs`` that are known."""
    sizes = [int(np.prod(a.shape)) for _, a in arrays_of(outputs)]
    unknown = sum(int(np.count_nonzero(~mask)) for mask in observation.known(outputs).values())
    return 1.0 - unknown / sum(sizes) if sum(sizes) else 1.0
