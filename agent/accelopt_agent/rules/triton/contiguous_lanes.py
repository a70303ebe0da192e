"""Give neighbouring lanes neighbouring elements: each program takes a block instead of every n-th element."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.block_size import grid_axis
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    for node in kernel.source.walk(kernel.subject.function.body, cst.BinaryOperation):
        if not isinstance(node.operator, cst.Add):
            continue
        for start, spread in ((node.left, node.right), (node.right, node.left)):
            lanes = _lanes_times_programs(kernel, spread)
            axis = _program_id(kernel, start)
            if lanes is None or axis is None or lanes[1] != axis or kernel.flow.statement_of(node) is None:
                continue
            source = kernel.source
            text = f"{source.code(start)} * {lanes[2]} + {source.code(lanes[0])}"
            summary = (
                "Let each program take neighbouring elements: the warp's lanes then share memory sectors."
            )
            yield Rewrite((source.replace(node, text),), summary)


def _meaning(kernel: TritonKernel, node: cst.BaseExpression) -> cst.BaseExpression:
    """``node``, or what it was bound to if it is a variable bound once."""
    if isinstance(node, cst.Name):
        bound = [s for s in kernel.flow.simple() if node.value in s.writes]
        if len(bound) == 1 and bound[0].value is not None and not bound[0].loops:
            return bound[0].value
    return node


def _axis(kernel: TritonKernel, node: cst.BaseExpression, function: str) -> str | None:
    call = _meaning(kernel, node)
    if not isinstance(call, cst.Call) or not kernel.is_call(call, function) or len(call.args) > 1:
        return None
    return kernel.source.code(call.args[0].value) if call.args else "0"


def _program_id(kernel: TritonKernel, node: cst.BaseExpression) -> str | None:
    return _axis(kernel, node, "program_id")


def _grid_argument(kernel: TritonKernel, node: cst.BaseExpression) -> str | None:
    """Return the grid axis whose number of programs each launch passes as the argument ``node``."""
    if not isinstance(node, cst.Name) or any(node.value in s.writes for s in kernel.flow.statements):
        return None
    for axis in range(3):
        pairs = [(grid_axis(kernel, la, axis), la.arguments.get(node.value)) for la in kernel.launches]
        if pairs and all(g is not None and a is not None and kernel.source.same(g[0], a) for g, a in pairs):
            return str(axis)
    return None


def _lanes_times_programs(
    kernel: TritonKernel, node: cst.BaseExpression
) -> tuple[cst.BaseExpression, str, str] | None:
    """Return the lanes, grid axis and block size of ``arange(0, block) * num_programs(axis)``."""
    product = _meaning(kernel, node)
    if not isinstance(product, cst.BinaryOperation) or not isinstance(product.operator, cst.Multiply):
        return None
    for lanes, programs in ((product.left, product.right), (product.right, product.left)):
        axis = _axis(kernel, programs, "num_programs") or _grid_argument(kernel, programs)
        arange = _meaning(kernel, lanes)
        if axis is None or not isinstance(arange, cst.Call) or not kernel.is_call(arange, "arange"):
            continue
        if len(arange.args) == 2 and kernel.source.code(arange.args[0].value) == "0":
            block = arange.args[1].value
            if isinstance(block, (cst.Name, cst.Integer)):
                return lanes, axis, kernel.source.code(block)
    return None
