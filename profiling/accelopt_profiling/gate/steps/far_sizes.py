"""Sizes at which offsets pass 32 bits: too large to be computed, but where programs would read and write can be found.

Inputs are zeros in pages that nobody touches. Of each launch a few programs are interpreted, spread over its grid.
"""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from types import ModuleType
from typing import Any

from accelopt_profiling.comparison.inplace_outputs import with_inplace_outputs
from accelopt_profiling.comparison.memory import arrays_of
from accelopt_profiling.gate.case_files import problem_files
from accelopt_profiling.gate.observe.emulation import emulation, hollow_draws
from accelopt_profiling.gate.step_schemas import FarParams
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.call import perform
from accelopt_profiling.problems.loading.sizes import ProblemSizes, size_text
from accelopt_profiling.problems.problem import Call, Problem
from accelopt_profiling.step_context import StepContext, StepFailedError
from accelopt_profiling.worker.usercode import load_module, user_errors

#: Below the folder ``gate``.
_FILE = "far.json"
#: The largest input has at least so many elements: the last of the programs that are run are beyond 32 bits.
_ELEMENTS = 5 << 29
#: So much is too large even for pages that nobody touches, with so many bytes for an element at most.
_MOST_BYTES, _WIDEST = 64 << 30, 8
#: So many axes are tried.
_AXES = 2
#: So many programs of each launch are run; of the original more, since what it does wrong excuses.
_PROGRAMS, _ORIGINAL_PROGRAMS = 4, 16
#: Processor time of a call; beyond, only what was seen until then counts.
_SECONDS = 1.0


@dataclass(frozen=True)
class FarCall:
    """The call at a far ``size``, in words.

    Tensors among its ``arguments`` are lists of a shape, a dtype and whether they want gradients.
    """

    size: str
    call: dict[str, Any]
    arguments: list[Any]


def save_far_calls(context: StepContext, problem: Problem, target: str) -> None:
    """Draw the calls at far sizes, one axis at a time, of a problem that takes its sizes as arguments."""
    if ProblemSizes(problem).fixed:
        return
    calls: list[FarCall] = []
    with hollow_draws(target):
        for name, size in ProblemSizes(problem).full.items():
            with contextlib.suppress(Exception):  # the problem's code, asked for what it never promised
                call = _far_call(problem, name, size)
                calls += [] if call is None else [call]
    if calls:
        text = json.dumps([to_plain(call) for call in calls[:_AXES]])
        (context.folder / "gate" / _FILE).write_text(text, encoding="utf-8")


def _far_call(problem: Problem, name: str, size: int) -> FarCall | None:
    """Return the call at a far size of one axis, from those at its own size and at twice that."""
    sizes = ProblemSizes(problem)
    drawn: list[list[Any]] = []
    largest: list[int] = []
    for now in (size, 2 * size):
        with sizes.at({name: now}).applied():
            inputs = sizes.inputs(0)
            call, arguments = problem.call(inputs)
        if call.backward:  # gradients touch all of the inputs
            return None
        largest.append(max(prod(a.shape) for _, a in arrays_of(inputs)))
        drawn.append([to_plain(call), [_specified(a) for a in arguments]])
    times = -(-_ELEMENTS // largest[0])
    if largest[1] != 2 * largest[0]:  # the largest input does not follow this axis alone
        return None
    far, specified = _extrapolated(drawn[0], drawn[1], times)
    nbytes = sum(prod(a[0]) * _WIDEST for a in specified if isinstance(a, list))
    return FarCall(size_text(name, times * size), far, specified) if nbytes <= _MOST_BYTES else None


def _extrapolated(one: Any, two: Any, times: int) -> Any:
    """Return plain data at so many ``times`` a size of what it is at one and at two times: integers follow in a line.

    Raises:
        ValueError: something else changes too.
    """
    if type(one) is int and type(two) is int:
        return one + (two - one) * (times - 1)
    if isinstance(one, dict):
        return {name: _extrapolated(value, two[name], times) for name, value in one.items()}
    if isinstance(one, list):
        return [_extrapolated(a, b, times) for a, b in zip(one, two, strict=True)]
    if one != two:
        raise ValueError("it changes with the size")
    return one


def _specified(value: Any) -> Any:
    """Return an argument as plain data.

    Raises:
        TypeError: it is neither a tensor nor a number.
    """
    if hasattr(value, "untyped_storage"):
        return [list(value.shape), str(value.dtype).removeprefix("torch."), value.requires_grad]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(type(value).__name__)


def far(context: StepContext, params: FarParams) -> dict[str, str]:
    """Return which address of a candidate is out of bounds at far sizes, by the size, where the original has none.

    A call that raises tells nothing.
    """
    file = context.folder / "gate" / _FILE
    if not file.is_file():
        return {}
    calls = [from_plain(FarCall, call) for call in json.loads(file.read_text(encoding="utf-8"))]
    with emulation(params.dialect, params.target):
        module = load_module(context)
    faults = {
        one.size: _fault(context, module, target=params.target, call=one, programs=_PROGRAMS) for one in calls
    }
    if not any(faults.values()):
        return {}
    with problem_files(context, params.original) as own:
        with emulation(params.dialect, params.target):
            theirs = load_module(own)
        for one in calls:
            if faults[one.size] and _fault(
                own, theirs, target=params.target, call=one, programs=_ORIGINAL_PROGRAMS
            ):
                faults[one.size] = ""
    return {size: fault for size, fault in faults.items() if fault}


@contextlib.contextmanager
def _time_bound() -> Iterator[None]:
    """Raise in the body, again and again, once it has taken its processor time: host code may walk over the long axis.

    Raises:
        TimeoutError: it took longer.
    """
    running = True

    def end(*_: Any) -> None:
        if running:
            raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS, _SECONDS / 10)
    try:
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _fault(context: StepContext, module: ModuleType, target: str, call: FarCall, programs: int) -> str:
    import torch

    from accelopt_profiling.triton.capture.hollow_tensors import untouched_zeros
    from accelopt_profiling.triton.capture.install import emulated
    from accelopt_profiling.triton.capture.session import describe

    def argument(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        shape, dtype, wants_gradient = value
        return untouched_zeros(torch.empty(shape, dtype=getattr(torch, dtype), device="meta"), wants_gradient)

    with emulated(target, sample=programs, hollow=True, count=False) as session:
        with contextlib.suppress(StepFailedError), user_errors(context), _time_bound():
            arguments = [argument(value) for value in call.arguments]
            make = partial(perform, module, from_plain(Call, call.call), arguments, context.source.kernel)
            with_inplace_outputs(make, arguments, [])
        faults = [fault for execution in session.executions for fault in execution.faults]
        return describe(faults[0]) if faults else ""
