"""The gate's steps by name, each with the type of its parameters, for ``worker.steps``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accelopt_profiling.gate.inputs.draw import draw
from accelopt_profiling.gate.judge.judge import judge
from accelopt_profiling.gate.step_schemas import (
    DeviceRunParams,
    DrawParams,
    FarParams,
    JudgeParams,
    OriginalParams,
    PlanParams,
    ReferenceParams,
    RunParams,
    StepParams,
)
from accelopt_profiling.gate.steps.device import run_on_device
from accelopt_profiling.gate.steps.far_sizes import far
from accelopt_profiling.gate.steps.launch import launch
from accelopt_profiling.gate.steps.original import original
from accelopt_profiling.gate.steps.plan import plan
from accelopt_profiling.gate.steps.reference import reference
from accelopt_profiling.gate.steps.run import run

STEPS: dict[str, tuple[Callable[..., Any], type[Any]]] = {
    "gate.draw": (draw, DrawParams),
    "gate.plan": (plan, PlanParams),
    "gate.run": (run, RunParams),
    "gate.device": (run_on_device, DeviceRunParams),
    "gate.original": (original, OriginalParams),
    "gate.reference": (reference, ReferenceParams),
    "gate.judge": (judge, JudgeParams),
    "gate.launch": (launch, StepParams),
    "gate.far": (far, FarParams),
}
