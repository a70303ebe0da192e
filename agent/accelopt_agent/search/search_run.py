"""Defines what the kernels of one run share."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelopt_agent.evaluation.evaluators import CostEvaluator, GateEvaluator
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.search.budget import Meter
from accelopt_agent.search.control import SearchControl
from accelopt_agent.search.recorder import Recorder


@dataclass(frozen=True)
class SearchRun:
    """What the kernels of one run share: who says what a version costs and whether it is right, the limits, and where
    it is recorded. ``host`` names where costs and verdicts come from."""

    request: OptimizeRequest
    cost: CostEvaluator
    gate: GateEvaluator
    recorder: Recorder
    meter: Meter
    id: str
    host: str
    control: SearchControl = field(default_factory=SearchControl)
