"""Defines what the kernels of one run share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from accelopt_agent.evaluation.evaluators import CostEvaluator, GateEvaluator
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.control import SearchControl
from accelopt_agent.search.recorder import Recorder
from accelopt_agent.suggestions.suggestion import Suggestion

#: Returns a suggestion in the layout of its project: another text of the same program.
LayOut = Callable[[Suggestion], Awaitable[Suggestion]]


async def as_written(suggestion: Suggestion) -> Suggestion:
    """Return the suggestion as it is."""
    return suggestion


@dataclass(frozen=True)
class SearchRun:
    """What the kernels of one run share: who says what a version costs and whether it is right, the limits, and where
    it is recorded. ``host`` names where costs and verdicts come from; ``lay_out`` formats what is offered."""

    request: OptimizeRequest
    cost: CostEvaluator
    gate: GateEvaluator
    recorder: Recorder
    meter: Meter
    id: str
    host: str
    control: SearchControl = field(default_factory=SearchControl)
    lay_out: LayOut = as_written
