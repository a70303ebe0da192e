"""Let ``activation`` do the multiply or add before it: its scale and bias are free."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.nki.elementwise import (
    Activation,
    ScalarStep,
    activation,
    keeps_precision,
    operation,
    scalar_steps,
)
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import root_name

#: What ``activation_reduce`` has beside the arguments of ``activation``.
_REDUCING = ("reduce_op", "reduce_res")


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for instruction in kernel.instructions:
        consumer = activation(kernel, instruction) or _reducing(kernel, instruction)
        if consumer is not None and instruction.statement is not None:
            rewrite = _fused(kernel, consumer)
            if rewrite is not None:
                yield rewrite


def _reducing(kernel: NkiKernel, instruction: NkiCall) -> Activation | None:
    """Return an activation that is added up, which scales and adds as any other."""
    if instruction.path != f"{NISA}.activation_reduce":
        return None
    op, data = operation(kernel, instruction.get("op")), instruction.get("data")
    if (
        op is None
        or data is None
        or set(instruction.args) - {"op", "data", "scale", "bias", "mask", "dtype", *_REDUCING}
    ):
        return None
    scale, bias = instruction.get("scale"), instruction.get("bias")
    one = scale is None or number(kernel.flow, scale) == 1
    none = bias is None or kernel.is_none(bias)
    return Activation(instruction, op, data=data, scale=None if one else scale, bias=None if none else bias)


def _fused(kernel: NkiKernel, consumer: Activation) -> Rewrite | None:
    instruction = consumer.instruction
    assert instruction.statement is not None
    producer = kernel.producer(consumer.data, instruction.statement)
    before = scalar_steps(kernel, producer)
    if producer is None or before is None or kind(kernel, before.data) is None:
        return None
    if not kernel.same_mask(producer, instruction) or not keeps_precision(kernel, producer, instruction):
        return None
    scale, bias = kernel.code(consumer.scale), kernel.code(consumer.bias)
    preparation: list[str] = []
    for step in reversed(before.steps):
        if step.op == "multiply":
            scale = _product(kernel, step.operand, consumer.scale if scale is not None else None)
            if scale is None:
                return None
        elif scale is not None or bias is not None:
            return None
        else:
            bias = _bias(kernel, step, root_name(consumer.data), preparation)
            if bias is None:
                return None
    reducing = {name: kernel.code(instruction.get(name)) for name in _REDUCING}
    text = kernel.respelled(
        instruction,
        "nisa.activation_reduce" if reducing["reduce_res"] else "nisa.activation",
        op=_token(kernel, consumer),
        data=kernel.source.code(before.data),
        bias=bias,
        scale=scale,
        **reducing,
        mask=kernel.code(instruction.get("mask")),
        dtype=kernel.code(instruction.get("dtype")),
    )
    if text is None or "op=None" in text:
        return None
    edits = [kernel.source.replace_with_parentheses(instruction.call, text), *kernel.without(producer)]
    if preparation:
        edits.append(kernel.source.before(instruction.statement.node, "\n".join(preparation)))
    what = " and ".join("scale" if s.op == "multiply" else "bias" for s in before.steps)
    line = kernel.source.line(producer.call)
    return Rewrite(
        tuple(edits), f"Fold line {line} into the {what} of the {consumer.op} activation, where it is free."
    )


def _token(kernel: NkiKernel, consumer: Activation) -> str | None:
    return kernel.code(consumer.instruction.get("op")) or kernel.spelled(f"{NL}.{consumer.op}")


def _product(kernel: NkiKernel, factor: cst.BaseExpression, scale: cst.BaseExpression | None) -> str | None:
    """``factor * scale`` as a scale: a number or, when there was none before, a column."""
    if scale is None:
        return kernel.source.code(factor)
    one, other = number(kernel.flow, factor), number(kernel.flow, scale)
    if one is not None and other is not None:
        return repr(one * other)
    both_numbers = kind(kernel, factor) == kind(kernel, scale) == "number"
    return f"({kernel.source.code(factor)}) * ({kernel.source.code(scale)})" if both_numbers else None


def _bias(kernel: NkiKernel, step: ScalarStep, name: str | None, preparation: list[str]) -> str | None:
    """Return the column to add: the operand of an add, or the negated operand of a subtract (one instruction
    on a column)."""
    if kind(kernel, step.operand) != "column" or (step.reverse and step.op == "subtract"):
        return None
    operand = kernel.source.code(step.operand)
    if step.op == "add":
        return operand
    multiply = kernel.spelled(f"{NL}.multiply")
    negated = f"negative_{name}"
    if step.op != "subtract" or multiply is None or kernel.flow.occurrences(negated):
        return None
    words = [kernel.spelled(f"{NL}.{w}") for w in ("ndarray", "float32", "sbuf")]
    if kernel.dialect.mutates:
        column_shape = tile(kernel, step.operand)
        call = kernel.spell("nisa.tensor_scalar", negated, operand, multiply, "-1.0")
        if call is None or column_shape is None or None in words:
            return None
        shape = f"({column_shape.rows}, 1), dtype={words[1]}, buffer={words[2]}"
        preparation += [f"{negated} = {words[0]}({shape})", call]
        return negated
    call = kernel.spell("nisa.tensor_scalar", operand, multiply, "-1.0")
    if call is None:
        return None
    preparation.append(f"{negated} = {call}")
    return negated
