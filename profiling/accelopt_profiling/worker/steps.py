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
    if name == "profile":
        bound = _parse(name, ProfileParams, params)
        return lambda context: profile(context, bound)
    if name == "load":
        return load
    if name == "infer":
        from accelopt_profiling.problems.inference.infer_step import infer
        from accelopt_profiling.problems.inference.inferred import InferParams

        wanted = _parse(name, InferParams, params)
        return lambda context: infer(context, wanted)
    if name == "nki.infer":
        from accelopt_profiling.nki.inference_step import infer_nki
        from accelopt_profiling.problems.inference.inferred import InferParams

        sought = _parse(name, InferParams, params)
        return lambda context: infer_nki(context, sought)
    if name == "time":
        from accelopt_profiling.timing.time_step import TimeParams, time_launches

        timed = _parse(name, TimeParams, params)
        return lambda context: time_launches(context, timed)
    if name == "time.check":
        from accelopt_profiling.timing.check_step import CheckTimedParams, check_timed

        compared = _parse(name, CheckTimedParams, params)
        return lambda context: check_timed(context, compared)
    if name == "torch":
        from accelopt_profiling.pytorch.reference_step import TorchParams, torch_times

        asked = _parse(name, TorchParams, params)
        return lambda context: torch_times(context, asked)
    if name == "trainium":
        from accelopt_profiling.trainium.step import DeviceParams, time_on_trainium

        device = _parse(name, DeviceParams, params)
        return lambda context: time_on_trainium(context, device)
    if name == "nki.facts":
        from accelopt_profiling.nki.tile_facts import FactsParams, tile_facts

        traced = _parse(name, FactsParams, params)
        return lambda context: tile_facts(context, traced)
    if name == "nki.compare":
        from accelopt_profiling.nki.equivalence import CompareParams, compare_dialects

        translated = _parse(name, CompareParams, params)
        return lambda context: {"cases": compare_dialects(context, translated)}
    from accelopt_profiling.gate.steps.table import STEPS

    if name not in STEPS:
        raise StepFailedError(
            StepError("unsupported", f"This worker knows no step {name!r}; is it an older version?")
        )
    function, kind = STEPS[name]
    gate_params = _parse(name, kind, params)
    return lambda context: function(context, gate_params)


def _parse(name: str, kind: type[Any], params: dict[str, Any]) -> Any:
    try:
        return from_plain(kind, params)
    except ValueError as error:
        raise StepFailedError(
            StepError("unsupported", f"The parameters of the step {name} do not fit: {error}")
        ) from None
