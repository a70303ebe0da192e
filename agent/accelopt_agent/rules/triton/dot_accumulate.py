"""Give ``tl.dot`` the accumulator, so that the tensor core adds to it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    for statement in kernel.flow.simple():
        node = statement.node
        if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
            continue
        accumulation = _accumulation(kernel, node.body[0])
        if accumulation is not None:
            name, dot = accumulation
            at = kernel.source.end(dot.args[-1])
            code, start = kernel.source.code(dot).encode(), kernel.source.start(dot)
            text = (code[: at - start] + f", acc={name}".encode() + code[at - start :]).decode()
            edit = kernel.source.replace(node.body[0], f"{name} = {text}")
            yield Rewrite((edit,), f"Accumulate into {name} inside tl.dot.")


def _accumulation(kernel: TritonKernel, node: cst.BaseSmallStatement) -> tuple[str, cst.Call] | None:
    """``acc += tl.dot(a, b)`` or ``acc = acc + tl.dot(a, b)``: the accumulator and the product."""
    dot: cst.BaseExpression
    if isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.AddAssign):
        target, dot = node.target, node.value
    elif (
        isinstance(node, cst.Assign)
        and len(node.targets) == 1
        and isinstance(node.value, cst.BinaryOperation)
    ):
        target, value = node.targets[0].target, node.value
        if not isinstance(value.operator, cst.Add) or not kernel.source.same(value.left, target):
            return None
        dot = value.right
    else:
        return None
    if not isinstance(target, cst.Name) or not isinstance(dot, cst.Call) or not kernel.is_call(dot, "dot"):
        return None
    has_accumulator = len(dot.args) > 2 and dot.args[2].keyword is None
    has_accumulator |= any(
        a.keyword is not None and a.keyword.value in ("acc", "out_dtype") for a in dot.args
    )
    if has_accumulator or not _is_float32(kernel, target.value):
        return None
    return target.value, dot


def _is_float32(kernel: TritonKernel, name: str) -> bool:
    """Return whether the accumulator starts as a float32 tile: what ``tl.dot`` adds to without another rounding."""
    for statement in kernel.flow.simple():
        value = statement.value
        if statement.binds(name) and isinstance(value, cst.Call) and kernel.is_call(value, "zeros", "full"):
            return any(kernel.names.path(a.value) == "triton.language.float32" for a in value.args)
    return False
