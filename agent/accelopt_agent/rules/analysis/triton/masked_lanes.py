"""Determines what lanes past the end of a row hold, and whether accesses leave them out."""

from __future__ import annotations

import math

import libcst as cst

from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.values import Evaluation, Value, load_arguments
from accelopt_profiling.triton.functions.table import functions_of

#: What a reduction does not notice.
_NEUTRAL = {"sum": 0.0, "max": -math.inf, "min": math.inf}
_ZERO_AT_ZERO = ("abs", "sqrt", "sin", "tanh", "erf", "pow")


def ignores_the_rest(kernel: TritonKernel, values: Evaluation, calls: list[cst.Call], length: Value) -> bool:
    """Return whether lanes at and past ``length`` change nothing in ``calls``: accesses leave them out, and reductions
    find what is neutral there."""
    for call in calls:
        if kernel.is_call(call, "load", "store"):
            mask = access(values, call)[1]
            if _has_lanes(values.of(call.args[0].value)) and not (mask is not None and bounds(mask, length)):
                return False
        elif kernel.is_call(call, *_NEUTRAL):
            name = kernel.source.code(call.func).rpartition(".")[2]
            value = values.of(call.args[0].value) if call.args else None
            if value is None or outside(values, value, length) != _NEUTRAL[name]:
                return False
        elif kernel.is_call(call, *_SENSITIVE):
            return False
    return True


#: Operations that depend on all lanes, or write in a way of their own.
_SENSITIVE = functions_of("reduction", "scan", "order", "normalization", "product", "atomic")


def bounds(mask: Value, length: Value) -> bool:
    """Return whether a mask is false in lanes at and past ``length``."""
    if mask.op == "BitAnd":
        return any(bounds(side, length) for side in mask.args if isinstance(side, Value))
    left = mask.args[0] if mask.op == "LessThan" else None
    return isinstance(left, Value) and mask.args[1] is length and _is_range(left)


def outside(values: Evaluation, value: Value, length: Value) -> float | None:
    """Return what ``value`` is in lanes at and past ``length``, where that is one number: terms that lanes
    share count as finite."""
    if value.number is not None:
        return float(value.number)
    if value.op == "load":
        mask, other = value.args[1], value.args[2]
        is_bounded = isinstance(mask, Value) and bounds(mask, length) and isinstance(other, Value)
        return outside(values, other, length) if is_bounded and isinstance(other, Value) else None
    if value.op == "sum":
        return _total(values, value, length)
    if value.op == "Divide":
        above = value.args[0]
        inside = outside(values, above, length) if isinstance(above, Value) else None
        return 0.0 if inside == 0 else None
    if value.op == "method" and value.args[0] == "to" and isinstance(value.args[1], Value):
        return outside(values, value.args[1], length)
    return _called(values, value, length) if value.op == "call" else None


def _called(values: Evaluation, value: Value, length: Value) -> float | None:
    name = value.args[0]
    arguments = [arg[1] for arg in value.args[1:] if isinstance(arg, tuple) and isinstance(arg[1], Value)]
    if name in ("zeros", "zeros_like"):
        return 0.0
    if name == "full" and len(arguments) > 1:
        return outside(values, arguments[1], length)
    if name == "where" and len(arguments) == 3:
        return outside(values, arguments[2], length) if bounds(arguments[0], length) else None
    if not arguments:
        return None
    inside = outside(values, arguments[0], length)
    if name == "cast":
        return inside
    if name in ("exp", "exp2") and inside is not None:
        return 0.0 if inside == -math.inf else None
    return 0.0 if str(name).rpartition(".")[2] in _ZERO_AT_ZERO and inside == 0 else None


def _total(values: Evaluation, value: Value, length: Value) -> float | None:
    """Return the sum of what the products of a sum are.

    One that is infinite outweighs those that lanes share.
    """
    total, unknown = 0.0, False
    for product, count in values.terms(value).items():
        factors = [outside(values, v, length) for v in product]
        if 0.0 in factors:
            continue
        if None in factors:
            if any(_has_lanes(v) for v in product):
                return None
            unknown = True
        else:
            total += count * math.prod(f for f in factors if f is not None)
    return total if not unknown or math.isinf(total) else None


def access(values: Evaluation, call: cst.Call) -> tuple[Value | None, Value | None]:
    """Return the pointer and the mask of a load or store."""

    def known(node: cst.CSTNode) -> Value:
        value = values.of(node)
        return value if value is not None else values.fresh("argument")

    if values.kernel.is_call(call, "load"):
        pointer, mask, _ = load_arguments(call, known)
        return pointer, mask
    placed = [a.value for a in call.args if a.keyword is None]
    keywords = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
    node = keywords.get("mask", placed[2] if len(placed) > 2 else None)
    pointer = known(placed[0]) if placed else None
    return pointer, known(node) if node is not None else None


def _is_range(value: Value) -> bool:
    return value.op == "call" and value.args[0] == "arange"


def _has_lanes(value: Value | None) -> bool:
    """Return whether lanes may differ in a value. What a reduction of all of them gives is one for all."""
    todo, visited = [value], set()
    while todo:
        at = todo.pop()
        if at is None or _is_range(at) or at.op in ("unknown", "expression"):
            return True
        if at in visited or (at.op == "call" and at.args[0] in _NEUTRAL):
            continue
        visited.add(at)
        todo += at.args[:1] if at.op == "load" else at.below()
    return False
