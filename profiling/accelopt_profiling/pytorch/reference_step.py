"""The step ``torch``: what PyTorch takes for a problem's reference, eager and compiled; ``reference_times`` asks a
host for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.hosts.host import Host, JobFailedError
from accelopt_profiling.jobs import Job, JobFiles, Limits, Step, StepError
from accelopt_profiling.measurement import Latency
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.call import to_device
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.pytorch.estimate import estimate_torch
from accelopt_profiling.pytorch.operators import NotModelledError, record_operators
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.targets.target import GpuTarget, load_target
from accelopt_profiling.timing.device import TorchDevice
from accelopt_profiling.timing.measure import TimingPlan, measure
from accelopt_profiling.timing.statistics import latency
from accelopt_profiling.worker.usercode import user_errors


@dataclass(frozen=True)
class TorchParams:
    """``target`` is what the time is estimated for where no device can time it."""

    problem: ProblemRef
    target: str
    seed: int = 0
    plan: TimingPlan = field(default_factory=lambda: TimingPlan(seconds=1.0, most_rounds=200))


@dataclass(frozen=True)
class TorchTimes:
    """``kernels`` and ``compiled_kernels`` are how many an estimate adds up (0: measured).

    ``why`` says what is missing, as one line.
    """

    eager: Latency = field(default_factory=Latency)
    compiled: Latency = field(default_factory=Latency)
    kernels: int = 0
    compiled_kernels: int = 0
    why: str = ""


def torch_times(context: StepContext, params: TorchParams) -> TorchTimes:
    """Time the reference on the host's device, or estimate its times for the target.

    Raises:
        StepFailedError: the reference failed, or looks at the values of tensors, which an estimate does not have.
    """
    import torch

    with user_errors(context):
        problem = load_problem(context, params.problem, None)
        if torch.cuda.is_available():
            return _measured(torch, problem, params)
        target = load_target(params.target)
        if not isinstance(target, GpuTarget):
            raise StepFailedError(
                StepError("unsupported", f"PyTorch's time on {params.target} is not modelled.")
            )
        try:
            operators = record_operators(lambda: _call(problem, params.seed))
        except NotModelledError as error:
            raise StepFailedError(StepError("unsupported", f"PyTorch was not estimated: {error}.")) from error
        except Exception as error:
            why = f"PyTorch's operators cannot be listed without data: {type(error).__name__}: {error}"
            raise StepFailedError(StepError("unsupported", " ".join(why.split())[:400])) from error
    estimate = estimate_torch(operators, target)
    return TorchTimes(estimate.eager, estimate.compiled, estimate.kernels, estimate.compiled_kernels)


def _call(problem: Problem, seed: int) -> Callable[[], Any]:
    """Return a call of the reference alone: its model is built, its inputs are drawn. Raises NotModelledError."""
    import torch

    inputs = problem.inputs(seed)
    if problem.model is not None:
        model = problem.model()
        if any(isinstance(module, torch.nn.RNNBase) for module in model.modules()):
            raise NotModelledError("the time of recurrent layers is not modelled")
        return lambda: model(*inputs)
    return lambda: problem.reference(inputs)


def _measured(torch: Any, problem: Problem, params: TorchParams) -> TorchTimes:
    """Time the reference on the device, cold caches before each run (not yet run on hardware)."""
    inputs = [to_device(value) for value in problem.inputs(params.seed)]
    eager, compiled = _calls(torch, problem)
    device, why = TorchDevice(torch), ""
    with torch.no_grad():
        runs = measure(
            device, {"eager": eager}, inputs=lambda: inputs, plan=params.plan, clock=time.perf_counter
        )
        try:
            runs |= measure(
                device,
                {"compiled": compiled},
                inputs=lambda: inputs,
                plan=params.plan,
                clock=time.perf_counter,
            )
        except Exception as error:
            why = " ".join(f"torch.compile failed: {type(error).__name__}: {error}".split())[:400]
    times = {name: latency(run.times_us) for name, run in runs.items()}
    return TorchTimes(times["eager"], times.get("compiled", Latency()), why=why)


def _calls(torch: Any, problem: Problem) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return the reference eager and compiled, each as a call of the list of inputs."""
    if problem.model is None:
        return problem.reference, torch.compile(problem.reference)
    model = problem.model().cuda()
    compiled = torch.compile(model)
    return lambda inputs: model(*inputs), lambda inputs: compiled(*inputs)


async def reference_times(
    host: Host, source: JobFiles, problem: ProblemRef, target: str, limits: Limits
) -> TorchTimes:
    """Return the times of the reference, measured where the host has a device and estimated for ``target`` elsewhere;
    without times ``why`` says why.

    Raises:
        HostUnreachableError: the host was lost.
    """
    has_device = bool((await host.facts()).devices)
    step = Step("torch", "torch", to_plain(TorchParams(problem, target)), limits, device=has_device)
    try:
        async with aclosing(host.run(Job(source, [step]))) as messages:
            answers = [message.value async for message in messages if message.final]
        return from_plain(TorchTimes, answers[-1])
    except JobFailedError as failed:
        return TorchTimes(why=failed.error.message)
    except (ValueError, IndexError) as error:
        return TorchTimes(why=f"the host's answer cannot be read: {error}")
