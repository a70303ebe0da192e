"""The calls that are timed: what is no part of the kernel file's work is done before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from accelopt_profiling.problems.loading.call import perform, poisoned, to_device
from accelopt_profiling.problems.problem import Problem
from accelopt_profiling.timing.inputs import tensors_in


@dataclass(frozen=True)
class TimedCall:
    """``run`` makes the call and returns what it returns; ``reads`` are the tensors it is given."""

    run: Callable[[], Any]
    reads: list[Any] = field(default_factory=list)


def timed_call(module: ModuleType, problem: Problem, drawn: list[Any], built: dict[str, Any]) -> TimedCall:
    """The call of ``module`` that the problem makes with the inputs ``drawn``, without drawing or changing them.

    Outputs that the caller allocates are allocated here. A KernelBench model is built in the first call, and kept in
    ``built`` for the file's other calls; its inputs are on the device by then.
    """
    call, arguments = problem.call(drawn)
    if call.style == "script":
        return TimedCall(lambda: problem.run(module, drawn))
    if call.style == "destination":
        function, outputs = getattr(module, call.function), [poisoned(spec) for spec in call.outputs]

        def fill() -> list[Any]:
            function(*arguments, *outputs)
            return outputs

        return TimedCall(fill, tensors_in(arguments))
    inputs = arguments
    if call.style == "model":
        construct, inputs = arguments
        inputs = [to_device(value) for value in inputs]
        arguments = [construct, inputs]
    return TimedCall(lambda: perform(module, call, arguments, built=built), tensors_in(inputs))
