"""The step ``time``: time a file's Triton kernels on the host's GPU.

The timers live in the process that runs the candidate, bound before its code is loaded. That stops accidents, not a
candidate that is out to patch them: the gate reads for that, and the roofline's floor bounds what could be claimed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

from accelopt_profiling.jobs import StepError
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.call import perform, poisoned
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.timing.conditions import read_conditions
from accelopt_profiling.timing.device import TorchDevice
from accelopt_profiling.timing.inputs import Given, RotatingInputs, on_device, tensors_in
from accelopt_profiling.timing.kept_outputs import KeptOutputs, own_kinds
from accelopt_profiling.timing.launches import LaunchTimer, traced
from accelopt_profiling.timing.measure import TimingPlan
from accelopt_profiling.timing.session import BASELINE, CANDIDATE, Surroundings, time_calls
from accelopt_profiling.worker.usercode import load_module, user_errors


@dataclass(frozen=True)
class TimeParams:
    """``baseline`` is another kernel file of the job to compare with in the same session, as a relative path.

    ``inputs`` sets of inputs are drawn from ``seed`` on, each in memory of its own, and take turns in it.
    """

    kernels: list[Kernel]
    problem: ProblemRef
    seed: int = 0
    inputs: int = 4
    baseline: str | None = None
    plan: TimingPlan = field(default_factory=TimingPlan)


def time_launches(context: StepContext, params: TimeParams) -> dict[str, Any]:
    """Return the latencies by kernel and of the whole call, as ``session.TimingSession`` in plain data. The outputs
    of some runs are left in the job's folder for the step ``check_step.check_timed``.

    Raises:
        StepFailedError: there is no GPU, or the user's code failed.
    """
    import torch

    if not torch.cuda.is_available():
        raise StepFailedError(
            StepError("unsupported", "torch sees no GPU on this host, so nothing was timed.")
        )
    device, clock = TorchDevice(torch), time.perf_counter
    conditions = partial(read_conditions, device.identifier)
    around = Surroundings(clock, lambda call: traced(torch, call), _hooked, conditions)
    with user_errors(context):
        module = load_module(context)
        problem = load_problem(context, params.problem, module)
        files = {CANDIDATE: module}
        if params.baseline is not None:
            files[BASELINE] = load_module(context, params.baseline, "accelopt_baseline")
        drawn = [on_device(problem.inputs(params.seed + number)) for number in range(params.inputs)]
        calls = {name: _calls(file, problem, drawn) for name, file in files.items()}
        inputs, outputs = RotatingInputs(_read_by(calls)), KeptOutputs()

        def after(name: str, run: int, pair: Given, returned: Any) -> None:
            if kinds := own_kinds(returned, torch.Tensor):
                message = (
                    f"The call returned a kind of tensor of its own ({', '.join(kinds)}); return torch's."
                )
                raise StepFailedError(StepError("unsupported", message))
            if name == CANDIDATE:
                outputs.see(run, pair, returned)

        variants = {name: _variant(file_calls) for name, file_calls in calls.items()}
        session = time_calls(device, variants, inputs=inputs, plan=params.plan, around=around, after=after)
        again = inputs()  # once more when nothing is timed any longer
        outputs.keep(session.runs, again, variants[CANDIDATE](again))
        outputs.save(context.folder)
    kernel_names = {k.name.split("#")[0].rpartition(".")[2]: k.name for k in params.kernels}
    timings = {kernel_names[name]: value for name, value in session.timings.items() if name in kernel_names}
    return {**to_plain(session), "timings": to_plain(timings)}


def _calls(file: ModuleType, problem: Problem, drawn: list[list[Any]]) -> list[TimedCall]:
    """Return the calls of one file, by the number of the memory that their inputs lie in."""
    built: dict[str, Any] = {}
    return [timed_call(file, problem, inputs, built) for inputs in drawn]


def _variant(calls: list[TimedCall]) -> Callable[[Given], Any]:
    return lambda pair: calls[pair.memory].run()


def _read_by(calls: dict[str, list[TimedCall]]) -> list[list[Any]]:
    """Return what the calls of all files read, set by set, each tensor once."""
    numbers = range(len(calls[CANDIDATE]))
    return [
        list({id(t): t for file_calls in calls.values() for t in file_calls[n].reads}.values())
        for n in numbers
    ]


def _hooked(timer: LaunchTimer) -> AbstractContextManager[None]:
    from accelopt_profiling.triton_adapter.runtime import launch_hooks

    return launch_hooks(timer.enter, timer.exit)


@dataclass(frozen=True)
class TimedCall:
    """``run`` makes the call and returns what it returns. ``reads`` are the tensors it is given."""

    run: Callable[[], Any]
    reads: list[Any] = field(default_factory=list)


def timed_call(module: ModuleType, problem: Problem, drawn: list[Any], built: dict[str, Any]) -> TimedCall:
    """Return the call of ``module`` that the problem makes with the inputs ``drawn``, without drawing or
    changing them.

    Outputs that the caller allocates are allocated here. A KernelBench model is built in the first call, and kept in
    ``built`` for the file's other calls; its inputs are on the device by then.
    """
    call, arguments = problem.call(drawn)
    arguments = on_device(arguments)
    outputs = [poisoned(spec) for spec in call.outputs]
    timed = partial(perform, module, call, arguments, problem.file, built, outputs=outputs)
    return TimedCall(timed, tensors_in(arguments))
