"""The steps that a worker can run, by name: parameters and function, imported when they are needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from accelopt_profiling.jobs import ProfileParams, StepError
from accelopt_profiling.plain import from_plain
from accelopt_profiling.worker.step_context import StepContext, StepFailedError


def profile(context: StepContext, params: ProfileParams) -> Any:
    """Profile the kernels of one dialect; ``params.kernels`` holds no others."""
    if params.kernels and params.kernels[0].dialect == "triton":
        from accelopt_profiling.triton.profile import profile as profile_triton

        return {"kernels": profile_triton(context, params)}
    from accelopt_profiling.nki.profile import profile as profile_nki

    return {"kernels": profile_nki(context, params)}


def load(context: StepContext) -> Any:
    """Import the kernel file and name what it defines: the cheapest check that it runs on this host."""
    from accelopt_profiling.worker.usercode import load_module

    return {"names": sorted(name for name in vars(load_module(context)) if not name.startswith("__"))}


def find_step(name: str, params: dict[str, Any]) -> Callable[[StepContext], Any]:
    """Return the step ``name`` bound to its parameters.

    Raises:
        StepFailedError: there is no such step, or the parameters do not fit it (an older or newer client).
    """
    if name == "load":
        return load
    function, kind = _implementation(name)
    bound = _parse(name, kind, params)
    return lambda context: function(context, bound)


#: The module, function and parameters of each step but the gate's.
_STEPS = {
    "infer": ("problems.inference.infer_step", "infer", "InferParams"),
    "nki.infer": ("nki.inference_step", "infer_nki", "InferParams"),
    "nki.facts": ("nki.tile_facts", "tile_facts", "FactsParams"),
    "nki.compare": ("nki.equivalence", "compare_dialects", "CompareParams"),
    "time": ("timing.time_step", "time_launches", "TimeParams"),
    "time.check": ("timing.check_step", "check_timed", "CheckTimedParams"),
    "torch": ("pytorch.reference_step", "torch_times", "TorchParams"),
    "trainium": ("trainium.step", "time_on_trainium", "DeviceParams"),
}


def _implementation(name: str) -> tuple[Callable[..., Any], type[Any]]:
    """Return the function of a step and the type of its parameters. Raises StepFailedError: there is no such step."""
    if name == "profile":
        return profile, ProfileParams
    if name in _STEPS:
        path, function, params = _STEPS[name]
        module = importlib.import_module(f"accelopt_profiling.{path}")
        return getattr(module, function), getattr(module, params)
    from accelopt_profiling.gate.steps.table import STEPS

    if name in STEPS:
        return STEPS[name]
    raise StepFailedError(
        StepError("unsupported", f"This worker knows no step {name!r}; is it an older version?")
    )


def _parse(name: str, kind: type[Any], params: dict[str, Any]) -> Any:
    try:
        return from_plain(kind, params)
    except ValueError as error:
        raise StepFailedError(
            StepError("unsupported", f"The parameters of the step {name} do not fit: {error}")
        ) from None
