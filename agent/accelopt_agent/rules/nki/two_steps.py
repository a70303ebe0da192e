"""Do a step against a scalar or column and the step after it in one instruction: against another one in
``tensor_scalar``, against a tile in ``scalar_tensor_tensor``, against the tile itself by a multiply.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.nki.elementwise import (
    ScalarSteps,
    TensorPair,
    keeps_precision,
    pair,
    scalar_steps,
)
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.rule_context import Rewrite


def combine_tensor_scalar(kernel: NkiKernel) -> Iterator[Rewrite]:
    for instruction in kernel.instructions:
        second = scalar_steps(kernel, instruction)
        if second is not None and len(second.steps) == 1:
            rewrite = _both_scalar(kernel, second)
            if rewrite is not None:
                yield rewrite


def _both_scalar(kernel: NkiKernel, second: ScalarSteps) -> Rewrite | None:
    after = second.instruction
    if after.statement is None:
        return None
    before = kernel.producer(second.data, after.statement)
    first = scalar_steps(kernel, before)
    if before is None or first is None or len(first.steps) != 1:
        return None
    if not kernel.same_mask(before, after) or not keeps_precision(kernel, before, after):
        return None
    one, two = first.steps[0], second.steps[0]
    ops = [kernel.spelled(f"{NL}.{step.op}") for step in (one, two)]
    text = kernel.respelled(
        after,
        "nisa.tensor_scalar",
        data=kernel.source.code(first.data),
        op0=ops[0],
        operand0=kernel.source.code(one.operand),
        reverse0="True" if one.reverse else None,
        op1=ops[1],
        operand1=kernel.source.code(two.operand),
        reverse1="True" if two.reverse else None,
        dtype=kernel.code(after.get("dtype")),
        mask=kernel.code(after.get("mask")),
        engine=kernel.code(after.get("engine")),
    )
    if text is None or None in ops:
        return None
    edits = (kernel.source.replace_with_parentheses(after.call, text), *kernel.without(before))
    line = kernel.source.line(before.call)
    return Rewrite(edits, f"Do the {one.op} of line {line} and the {two.op} after it in one tensor_scalar.")


#: Operations that ``nisa.scalar_tensor_tensor`` is used with here.
_OPS = frozenset({"add", "subtract", "multiply", "maximum", "minimum"})


def scalar_tensor_tensor(kernel: NkiKernel) -> Iterator[Rewrite]:
    for instruction in kernel.instructions:
        second = pair(kernel, instruction)
        if second is None or second.op not in _OPS:
            continue
        for data, other, reverse in ((second.left, second.right, False), (second.right, second.left, True)):
            rewrite = _scalar_and_tile(kernel, second, data=data, other=other, reverse=reverse)
            if rewrite is not None:
                yield rewrite


def _scalar_and_tile(
    kernel: NkiKernel, second: TensorPair, data: cst.BaseExpression, other: cst.BaseExpression, reverse: bool
) -> Rewrite | None:
    after = second.instruction
    if after.statement is None:
        return None
    before = kernel.producer(data, after.statement)
    first = scalar_steps(kernel, before)
    if before is None or first is None or len(first.steps) != 1 or first.steps[0].op not in _OPS:
        return None
    if kind(kernel, first.data) != "tile" or not kernel.same_mask(before, after):
        return None
    if not keeps_precision(kernel, before, after):
        return None
    step = first.steps[0]
    ops = [kernel.spelled(f"{NL}.{op}") for op in (step.op, second.op)]
    text = kernel.respelled(
        after,
        "nisa.scalar_tensor_tensor",
        data=kernel.source.code(first.data),
        op0=ops[0],
        operand0=kernel.source.code(step.operand),
        reverse0="True" if step.reverse else None,
        op1=ops[1],
        operand1=kernel.source.code(other),
        reverse1="True" if reverse else None,
        dtype=kernel.code(after.get("dtype")),
        mask=kernel.code(after.get("mask")),
    )
    if text is None or None in ops:
        return None
    edits = (kernel.source.replace_with_parentheses(after.call, text), *kernel.without(before))
    line = kernel.source.line(before.call)
    return Rewrite(
        edits, f"Do the {step.op} of line {line} and the {second.op} after it in one scalar_tensor_tensor."
    )


def own_multiple(kernel: NkiKernel) -> Iterator[Rewrite]:
    for instruction in kernel.instructions:
        second = pair(kernel, instruction)
        if second is None or second.op not in ("add", "subtract"):
            continue
        for data, other, reverse in ((second.left, second.right, False), (second.right, second.left, True)):
            if (
                rewrite := _tile_and_multiple(kernel, second, data=data, other=other, reverse=reverse)
            ) is not None:
                yield rewrite


def _tile_and_multiple(
    kernel: NkiKernel, second: TensorPair, data: cst.BaseExpression, other: cst.BaseExpression, reverse: bool
) -> Rewrite | None:
    """Return the tile ``other`` times what is left of it, where ``data`` is a multiple of it."""
    after, source = second.instruction, kernel.source
    if after.statement is None or kernel.code(after.get("engine")) is not None:
        return None
    before = kernel.producer(data, after.statement)
    first = scalar_steps(kernel, before)
    if before is None or first is None or len(first.steps) != 1 or first.steps[0].op != "multiply":
        return None
    times, multiply = number(kernel.flow, first.steps[0].operand), kernel.spelled(f"{NL}.multiply")
    if times is None or multiply is None or not source.same(first.data, other):
        return None
    if not kernel.same_mask(before, after) or not keeps_precision(kernel, before, after):
        return None
    if second.op == "add":
        multiple = 1 + times
    else:
        multiple = 1 - times if reverse else times - 1
    text = kernel.respelled(
        after,
        "nisa.tensor_scalar",
        data=source.code(other),
        op0=multiply,
        operand0=repr(float(multiple)),
        dtype=kernel.code(after.get("dtype")),
        mask=kernel.code(after.get("mask")),
    )
    if text is None:
        return None
    edits = (source.replace_with_parentheses(after.call, text), *kernel.without(before))
    line = source.line(before.call)
    return Rewrite(
        edits, f"Multiply by {multiple} where line {line} and the {second.op} after it change one tile."
    )
