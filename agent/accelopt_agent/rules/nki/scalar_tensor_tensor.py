"""Do a step against a scalar or column and the step against a tile after it in one instruction."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.nki.elementwise import TensorPair, keeps_precision, pair, scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel, open_nki
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext

#: Operations that ``nisa.scalar_tensor_tensor`` is used with here.
_OPS = frozenset({"add", "subtract", "multiply", "maximum", "minimum"})


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    for instruction in kernel.instructions:
        second = pair(kernel, instruction)
        if second is None or second.op not in _OPS:
            continue
        for data, other, reverse in ((second.left, second.right, False), (second.right, second.left, True)):
            rewrite = _combined(kernel, second, data, other, reverse)
            if rewrite is not None:
                yield rewrite


def _combined(
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
