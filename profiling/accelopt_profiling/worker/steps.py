"""The steps that a worker can run: rows of names, so that what is below imports nothing above it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from accelopt_profiling.jobs import StepError
from accelopt_profiling.plain import from_plain
from accelopt_profiling.step_context import StepContext, StepFailedError


class StepFunction(NamedTuple):
    """A step: the module and the function that do it, and the class of its parameters, which the module has too."""

    module: str
    function: str
    parameters: str


#: The steps by name, but ``load``. ``profile`` is one of each dialect.
STEPS = {
    "profile.triton": StepFunction("triton.profile", "profile", "ProfileParams"),
    "profile.nki": StepFunction("nki.profile", "profile", "ProfileParams"),
    "infer": StepFunction("problems.inference.infer_step", "infer", "InferParams"),
    "nki.infer": StepFunction("nki.inference_step", "infer_nki", "InferParams"),
    "nki.facts": StepFunction("nki.tile_facts", "tile_facts", "FactsParams"),
    "nki.compare": StepFunction("nki.equivalence", "compare_dialects", "CompareParams"),
    "time": StepFunction("timing.time_step", "time_launches", "TimeParams"),
    "time.check": StepFunction("timing.check_step", "check_timed", "CheckTimedParams"),
    "torch": StepFunction("pytorch.reference_step", "torch_times", "TorchParams"),
    "trainium": StepFunction("trainium.step", "time_on_trainium", "DeviceParams"),
    "gate.draw": StepFunction("gate.steps.draw", "draw", "DrawParams"),
    "gate.plan": StepFunction("gate.steps.plan", "plan", "PlanParams"),
    "gate.run": StepFunction("gate.steps.run", "run", "RunParams"),
    "gate.device": StepFunction("gate.steps.device", "run_on_device", "DeviceRunParams"),
    "gate.original": StepFunction("gate.steps.original", "original", "OriginalParams"),
    "gate.reference": StepFunction("gate.steps.reference", "reference", "ReferenceParams"),
    "gate.judge": StepFunction("gate.steps.judge", "judge", "JudgeParams"),
    "gate.launch": StepFunction("gate.steps.launch", "launch", "StepParams"),
    "gate.far": StepFunction("gate.steps.far_sizes", "far", "FarParams"),
}


def load(context: StepContext) -> Any:
    """Import the kernel file and name what it defines: the cheapest check that it runs on this host."""
    from accelopt_profiling.worker.usercode import load_module

    return {"names": sorted(name for name in vars(load_module(context)) if not name.startswith("__"))}


def modules(prefix: str) -> list[str]:
    """Return the modules of the steps whose names begin so."""
    return [f"accelopt_profiling.{step.module}" for name, step in STEPS.items() if name.startswith(prefix)]


def find_step(name: str, params: dict[str, Any]) -> Callable[[StepContext], Any]:
    """Return the step ``name`` bound to its parameters.

    Raises:
        StepFailedError: there is no such step, or the parameters do not fit it (an older or newer client).
    """
    if name == "load":
        return load
    if name == "profile":  # all kernels of a step are of one dialect
        dialect = next((kernel.get("dialect") for kernel in params.get("kernels") or ()), "nki")
        profile = find_step(f"profile.{dialect}", params)
        return lambda context: {"kernels": profile(context)}
    step = STEPS.get(name)
    if step is None:
        raise _unsupported(f"This worker knows no step {name!r}; is it an older version?")
    module = importlib.import_module(f"accelopt_profiling.{step.module}")
    function = getattr(module, step.function)
    try:
        bound = from_plain(getattr(module, step.parameters), params)
    except ValueError as error:
        raise _unsupported(f"The parameters of the step {name} do not fit: {error}") from None
    return lambda context: function(context, bound)


def _unsupported(message: str) -> StepFailedError:
    return StepFailedError(StepError("unsupported", message))
