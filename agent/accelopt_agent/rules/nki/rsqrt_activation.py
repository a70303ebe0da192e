"""Take the reciprocal square root in one instruction."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.analysis.nki.elementwise import activation, keeps_precision
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiKernel
from accelopt_agent.rules.analysis.rule_context import Rewrite


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for instruction in kernel.instructions:
        if (
            instruction.path not in (f"{NISA}.reciprocal", f"{NL}.reciprocal")
            or instruction.statement is None
        ):
            continue
        data = instruction.get("data") or instruction.get("x")
        root = kernel.producer(data, instruction.statement) if data is not None else None
        function = activation(kernel, root)
        if root is None or function is None or function.op != "sqrt":
            continue
        if not kernel.same_mask(root, instruction) or not keeps_precision(kernel, root, instruction):
            continue
        text = kernel.respelled(
            instruction,
            "nisa.activation",
            op=kernel.spelled(f"{NL}.rsqrt"),
            data=kernel.source.code(function.data),
            bias=kernel.code(function.bias),
            scale=kernel.code(function.scale),
            mask=kernel.code(instruction.get("mask")),
            dtype=kernel.code(instruction.get("dtype")),
        )
        if text is not None:
            edits = (kernel.source.replace_with_parentheses(instruction.call, text), *kernel.without(root))
            yield Rewrite(edits, "Compute the reciprocal square root as one activation.")
