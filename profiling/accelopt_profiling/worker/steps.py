"""The steps that a worker can run, by name: parameters and function, imported when they are needed."""

from __future__ import annotations

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


def _implementation(name: str) -> tuple[Callable[..., Any], type[Any]]:
    """Return the function of a step and the type of its parameters. Raises StepFailedError: there is no such step."""
    if name == "profile":
        return profile, ProfileParams
    if name == "infer":
        from accelopt_profiling.problems.inference.infer_step import infer
        from accelopt_profiling.problems.inference.inferred import InferParams

        return infer, InferParams
    if name == "nki.infer":
        from accelopt_profiling.nki.inference_step import infer_nki
        from accelopt_profiling.problems.inference.inferred import InferParams

        return infer_nki, InferParams
    if name == "time":
        from accelopt_profiling.timing.time_step import TimeParams, time_launches

        return time_launches, TimeParams
    if name == "time.check":
        from accelopt_profiling.timing.check_step import CheckTimedParams, check_timed

        return check_timed, CheckTimedParams
    if name == "torch":
        from accelopt_profiling.pytorch.reference_step import TorchParams, torch_times

        return torch_times, TorchParams
    if name == "trainium":
        from accelopt_profiling.trainium.step import DeviceParams, time_on_trainium

        return time_on_trainium, DeviceParams
    if name == "nki.facts":
        from accelopt_profiling.nki.tile_facts import FactsParams, tile_facts

        return tile_facts, FactsParams
    if name == "nki.compare":
        from accelopt_profiling.nki.equivalence import CompareParams, compare_dialects

        return compare_dialects, CompareParams
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
