"""Specialise the kernel for sizes that the block size divides: there its mask is always true and goes away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel
from accelopt_agent.rules.analysis.triton.launch_flags import divisions_as_flags


@dataclass(frozen=True)
class _Bound:
    """``offsets < size`` with offsets that cover blocks of ``block`` elements from zero on."""

    comparison: cst.Comparison
    size: str
    block: str


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if not kernel.launches:
        return
    bounds = [
        b
        for c in kernel.source.walk(kernel.subject.function.body, cst.Comparison)
        if (b := _bound(kernel, c))
    ]
    divisions = list(dict.fromkeys((b.size, b.block) for b in bounds))
    declared = divisions_as_flags(kernel, divisions) if divisions else None
    if declared is None:
        return
    flags, edits = declared
    for bound in bounds:
        text = f"({kernel.source.code(bound.comparison)}) | {flags[bound.size, bound.block]}"
        if not isinstance(kernel.source.parent(bound.comparison), (cst.Arg, cst.Assign, cst.AnnAssign)):
            text = f"({text})"
        edits.append(kernel.source.replace_with_parentheses(bound.comparison, text))
    what = " and ".join(f"{size} that {block} divides" for size, block in divisions)
    yield Rewrite(tuple(edits), f"Compile a version without masks for {what}.")


def _bound(kernel: TritonKernel, comparison: cst.Comparison) -> _Bound | None:
    if len(comparison.comparisons) != 1 or not isinstance(comparison.comparisons[0].operator, cst.LessThan):
        return None
    size = comparison.comparisons[0].comparator
    if not isinstance(size, cst.Name) or size.value not in kernel.parameters:
        return None
    if any(size.value in s.writes for s in kernel.flow.statements):
        return None
    offsets = comparison.left
    if isinstance(offsets, cst.Subscript):
        offsets = offsets.value  # offsets[:, None]
    block = _block(kernel, _meaning(kernel, offsets), size.value)
    return _Bound(comparison, size.value, block) if block is not None else None


def _meaning(kernel: TritonKernel, node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, cst.Name):
        statement = kernel.flow.definition(node)
        if statement is not None and statement.value is not None:
            return statement.value
    return node


def _block(kernel: TritonKernel, offsets: cst.BaseExpression, size: str) -> str | None:
    """Return the constexpr B of ``arange(0, B)``, ``pid * B + arange(0, B)`` or ``start + arange(0, B)`` in a
    loop by B."""
    lanes = _lanes(kernel, offsets)
    if lanes is not None:
        return lanes
    if not isinstance(offsets, cst.BinaryOperation) or not isinstance(offsets.operator, cst.Add):
        return None
    for start, spread in ((offsets.left, offsets.right), (offsets.right, offsets.left)):
        block = _lanes(kernel, spread)
        if block is None:
            continue
        if _counts_blocks(kernel, start, size, block):
            return block
        axis = _program_block(kernel, _meaning(kernel, start), block)
        if axis is not None and all(
            _grid_covers(kernel, launch, axis, size, block) for launch in kernel.launches
        ):
            return block
    return None


def _lanes(kernel: TritonKernel, node: cst.BaseExpression) -> str | None:
    call = _meaning(kernel, node)
    if not isinstance(call, cst.Call) or not kernel.is_call(call, "arange") or len(call.args) != 2:
        return None
    low, high = call.args[0].value, call.args[1].value
    is_block = isinstance(high, cst.Name) and high.value in kernel.constexprs
    return kernel.source.code(high) if is_block and kernel.source.code(low) == "0" else None


def _counts_blocks(kernel: TritonKernel, start: cst.BaseExpression, size: str, block: str) -> bool:
    """Return whether ``start`` is the variable of ``for start in range(0, size, block)`` around it."""
    for loop in kernel.source.parents(start):
        if isinstance(loop, cst.For) and isinstance(start, cst.Name) and loop_variable(loop) == start.value:
            args = loop.iter.args if isinstance(loop.iter, cst.Call) else ()
            return [kernel.source.code(a.value) for a in args] == ["0", size, block]
    return False


def _program_block(kernel: TritonKernel, start: cst.BaseExpression, block: str) -> str | None:
    """Return the grid axis of ``program_id(axis) * block``."""
    if not isinstance(start, cst.BinaryOperation) or not isinstance(start.operator, cst.Multiply):
        return None
    for pid, factor in ((start.left, start.right), (start.right, start.left)):
        call = _meaning(kernel, pid)
        if (
            kernel.source.code(factor) == block
            and isinstance(call, cst.Call)
            and kernel.is_call(call, "program_id")
        ):
            return kernel.source.code(call.args[0].value) if call.args else "0"
    return None


def _grid_covers(kernel: TritonKernel, launch: KernelLaunch, axis: str, size: str, block: str) -> bool:
    """Return whether the launch runs exactly ``cdiv(size, block)`` programs along ``axis``: then no block is past
    the end."""
    grid = kernel.grid_expression(launch)
    meta = None
    if isinstance(grid, cst.Lambda):
        meta = grid.params.params[0].name.value if grid.params.params else None
        grid = grid.body
    if not isinstance(grid, cst.Tuple) or not axis.isdigit() or int(axis) >= len(grid.elements):
        return False
    call = grid.elements[int(axis)].value
    if not isinstance(call, cst.Call) or kernel.names.path(call.func) != "triton.cdiv" or len(call.args) != 2:
        return False
    arguments = launch.arguments.get(size), launch.arguments.get(block)
    total, per_program = (a.value for a in call.args)
    if arguments[0] is None or not kernel.source.same(arguments[0], total):
        return False
    chosen = kernel.source.code(per_program).replace("'", '"') == f'{meta}["{block}"]'
    return chosen or (arguments[1] is not None and kernel.source.same(arguments[1], per_program))
