"""Replace exp, add 1 and reciprocal (and the multiply of silu) by the activation that ScalarE has for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.elementwise import activation, pair, scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.rule_context import Rewrite


@dataclass(frozen=True)
class _Sigmoid:
    """``1 / (1 + exp(-scale * data))``, times ``data`` where ``times_data``.

    ``last`` is the instruction that has the result, ``inner`` are those before it.
    """

    data: cst.BaseExpression
    scale: float
    last: NkiCall
    inner: tuple[NkiCall, ...]
    times_data: bool = False


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for find in (_times_data, _sigmoid):
        for instruction in kernel.instructions:
            sigmoid = find(kernel, instruction)
            rewrite = _replaced(kernel, sigmoid) if sigmoid is not None else None
            if rewrite is not None:
                yield rewrite


def _times_data(kernel: NkiKernel, last: NkiCall) -> _Sigmoid | None:
    """``x * sigmoid(x)``, or ``x / (1 + exp(-x))``."""
    product = pair(kernel, last)
    if product is None or last.statement is None:
        return None
    if product.op == "divide":
        denominator = _one_plus_exp(kernel, product.right, last)
        fits = denominator is not None and kernel.source.same(denominator.data, product.left)
        return replace(denominator, times_data=True) if denominator is not None and fits else None
    if product.op != "multiply":
        return None
    for factor, other in ((product.left, product.right), (product.right, product.left)):
        producer = kernel.producer(factor, last.statement)
        sigmoid = _sigmoid(kernel, producer) if producer else None
        # With another scale than 1, the product would be computed as it is now.
        if sigmoid is not None and sigmoid.scale == 1 and kernel.source.same(sigmoid.data, other):
            return _Sigmoid(sigmoid.data, 1.0, last, (*sigmoid.inner, sigmoid.last), times_data=True)
    return None


def _sigmoid(kernel: NkiKernel, last: NkiCall) -> _Sigmoid | None:
    if last.path in (f"{NISA}.reciprocal", f"{NL}.reciprocal"):
        data = last.get("data") or last.get("x")
        return _one_plus_exp(kernel, data, last) if data is not None else None
    steps = scalar_steps(kernel, last)
    if steps is not None and [(s.op, s.reverse) for s in steps.steps] == [("divide", True)]:
        one = number(kernel.flow, steps.steps[0].operand) == 1
        return _one_plus_exp(kernel, steps.data, last) if one else None
    return None


def _one_plus_exp(kernel: NkiKernel, node: cst.BaseExpression, consumer: NkiCall) -> _Sigmoid | None:
    """Return the chain that makes ``node = 1 + exp(-scale * data)`` for ``consumer`` alone."""
    add = kernel.producer(node, consumer.statement) if consumer.statement else None
    steps = scalar_steps(kernel, add)
    if add is None or steps is None or add.statement is None or len(steps.steps) != 1:
        return None
    if steps.steps[0].op != "add" or number(kernel.flow, steps.steps[0].operand) != 1:
        return None
    exp = kernel.producer(steps.data, add.statement)
    exponential = activation(kernel, exp)
    if (
        exp is None
        or exponential is None
        or exponential.op != "exp"
        or exponential.bias is not None
        or exp.statement is None
    ):
        return None
    if not (kernel.same_mask(exp, add) and kernel.same_mask(add, consumer)):
        return None
    if exponential.scale is not None:
        factor = number(kernel.flow, exponential.scale)
        return None if factor is None else _Sigmoid(exponential.data, -factor, consumer, (exp, add))
    negation = kernel.producer(exponential.data, exp.statement)
    if negation is None or not kernel.same_mask(negation, exp):
        return None
    if negation.path == f"{NL}.negative":
        return _Sigmoid(negation["x"], 1.0, consumer, (negation, exp, add))
    times = scalar_steps(kernel, negation)
    if times is not None and len(times.steps) == 1 and times.steps[0].op == "multiply":
        factor = number(kernel.flow, times.steps[0].operand)
        return None if factor is None else _Sigmoid(times.data, -factor, consumer, (negation, exp, add))
    return None


def _replaced(kernel: NkiKernel, sigmoid: _Sigmoid) -> Rewrite | None:
    last, first = sigmoid.last, sigmoid.inner[0]
    if last.statement is None or first.statement is None:
        return None
    if not kernel.flow.unchanged(first.statement, last.statement, kernel.flow.variables(sigmoid.data)):
        return None
    data, silu = kernel.source.code(sigmoid.data), sigmoid.times_data and sigmoid.scale == 1
    options = {"mask": kernel.code(last.get("mask")), "dtype": kernel.code(last.get("dtype"))}
    text = kernel.respelled(
        last,
        "nisa.activation",
        op=kernel.spelled(f"{NL}.{'silu' if silu else 'sigmoid'}"),
        data=data,
        scale=None if sigmoid.scale == 1 else repr(sigmoid.scale),
        **options,
    )
    if text is not None and sigmoid.times_data and not silu:
        if kernel.dialect.mutates:
            return None  # the product stays an instruction of its own
        text = kernel.spell("nl.multiply", data, text, **options)
    if text is None:
        return None
    edits: list[ByteEdit] = [kernel.source.replace_with_parentheses(last.call, text)]
    for inner in sigmoid.inner:
        edits += kernel.without(inner)
    what = "silu" if silu else "sigmoid"
    count = len(sigmoid.inner) + (0 if sigmoid.times_data and not silu else 1)
    return Rewrite(tuple(edits), f"Compute {what} as one activation instead of {count} instructions.")
