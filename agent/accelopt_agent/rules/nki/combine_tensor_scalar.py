"""Do two steps against a scalar or column in one ``tensor_scalar``: the second is free."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.nki.elementwise import ScalarSteps, keeps_precision, scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel, open_nki
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    for instruction in kernel.instructions:
        second = scalar_steps(kernel, instruction)
        if second is not None and len(second.steps) == 1:
            rewrite = _combined(kernel, second)
            if rewrite is not None:
                yield rewrite


def _combined(kernel: NkiKernel, second: ScalarSteps) -> Rewrite | None:
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
