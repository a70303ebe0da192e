"""Give more programs a shorter part each, where a program goes through its part in a loop and few programs run."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.kernel import TL, TritonKernel, integer
from accelopt_agent.rules.analysis.triton.launch_sizes import LaunchSizes, Resize
from accelopt_agent.rules.analysis.triton.values import Evaluation, Value
from accelopt_profiling.targets import UnknownTargetError, load_gpu

#: By how much the part becomes shorter.
_DIVISORS = (4, 16, 64)
#: So many programs per multiprocessor keep it busy: more gain nothing by being more.
_PROGRAMS_EACH = 16


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.is_autotuned or len(kernel.launches) != 1:
        return
    values, launched = Evaluation(kernel), LaunchSizes(kernel, kernel.launches[0])
    values.walk(kernel.subject.function.body.body)
    most = _most(kernel.subject)
    for name in kernel.parameters:
        size = launched.value(name)
        if name not in kernel.constexprs or size is None or _sizes_lanes(kernel, values, name):
            continue
        axes, step = _axes(kernel, values, name), _step(kernel, values, launched, name)
        if not axes or step is None:
            continue
        for new in dict.fromkeys(size.value // d for d in _DIVISORS if d <= most and size.value % d == 0):
            resize = Resize(name, size.value, new=new, text=str(new), axes=axes)
            edits = launched.edits([resize]) if new >= step and new % step == 0 else None
            if edits:
                times = size.value // new
                summary = f"{times} times as many programs, each with {name}={new} instead of {size.value}."
                yield Rewrite((), summary, tuple(edits))


def _most(subject: RuleContext) -> float:
    """Return how many times as many programs the target has room for."""
    measured = subject.measurement.quantities if subject.measurement is not None else {}
    programs = measured["programs"].value if "programs" in measured else None
    try:
        units = load_gpu(subject.target or "h100")["multiprocessors"]
    except UnknownTargetError:
        return 0.0
    return max(_DIVISORS) if not programs else float(_PROGRAMS_EACH * units / programs)


def _sizes_lanes(kernel: TritonKernel, values: Evaluation, name: str) -> bool:
    """Return whether the argument is the length of a range of lanes: then it is the size of a tile."""
    lengths = [values.of(call.args[-1].value) for call in kernel.calls("arange") if call.args]
    return any(value is None or _mentions(value, name) for value in lengths)


def _mentions(value: Value, name: str) -> bool:
    return any(part.op == "parameter" and part.args[0] == name for part in value.parts())


def _axes(kernel: TritonKernel, values: Evaluation, name: str) -> frozenset[int]:
    """Return the grid axes whose programs each start ``name`` elements after the one before."""
    length, axes = values.make("parameter", name), set()
    for call in kernel.calls("program_id"):
        program, axis = values.of(call), integer(call.args[0].value) if call.args else 0
        if program is None or axis is None:
            continue
        start = values.terms(values.product(program, length))
        for node in kernel.source.walk(kernel.function.body, cst.BinaryOperation):
            terms = values.terms(value) if (value := values.of(node)) is not None else {}
            if start.items() <= terms.items():
                axes.add(axis)
    return frozenset(axes)


def _step(kernel: TritonKernel, values: Evaluation, launched: LaunchSizes, name: str) -> int | None:
    """Return the step of the one kind of loop that goes through ``name`` elements; None without one, or where its step
    is not known."""
    steps = set()
    for loop in kernel.source.walk(kernel.function.body, cst.For):
        call = loop.iter
        if not isinstance(call, cst.Call) or not call.args:
            continue
        path = kernel.names.path(call.func) or kernel.source.code(call.func)
        arguments = [a.value for a in call.args if a.keyword is None]
        ends = [values.of(node) for node in arguments[:2]]
        if path not in ("range", f"{TL}.range") or all(e is None or not _mentions(e, name) for e in ends):
            continue
        end = ends[-1]
        if end is None or end.op != "parameter" or len(arguments) > 3:
            return None
        steps.add(_number(launched, arguments[2]) if len(arguments) == 3 else 1)
    return steps.pop() if len(steps) == 1 else None


def _number(launched: LaunchSizes, node: cst.BaseExpression) -> int | None:
    if isinstance(node, cst.Name) and (value := launched.value(node.value)) is not None:
        return value.value
    return integer(node)
