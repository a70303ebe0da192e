"""Tell the compiler that wrapped offsets are contiguous, for sizes where no block wraps in the middle."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.launch_flags import Division, divisions_as_flags


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    wrapped = [(s, division) for s in kernel.flow.simple() if (division := _wrapped(kernel, s)) is not None]
    declared = divisions_as_flags(kernel, list(dict.fromkeys(d for _, d in wrapped))) if wrapped else None
    multiple, contiguous = kernel.spell("multiple_of"), kernel.spell("max_contiguous")
    if declared is None or multiple is None or contiguous is None:
        return
    flags, edits = declared
    for statement, (size, block) in wrapped:
        name = statement.target_name
        hint = f"{name} = {contiguous}({multiple}({name}, {block}), {block})"
        edits.append(kernel.source.after(statement.node, f"if {flags[size, block]}:\n    {hint}"))
    sizes = " and ".join(dict.fromkeys(size for _, (size, _) in wrapped))
    yield Rewrite(
        tuple(edits), f"Where blocks divide {sizes}, say that offsets taken modulo it are contiguous."
    )


def _wrapped(kernel: TritonKernel, statement: Statement) -> Division | None:
    """Size and block of ``offsets = (k * block + arange(0, block)) % size``.

    Where block divides size, (k * block) % size is a multiple of block and at least block below size: the offsets
    are ``block`` neighbours, whatever k is.
    """
    value = statement.value
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Modulo):
        return None
    size, total = value.right, value.left
    if not isinstance(statement.target, cst.Name) or not isinstance(size, cst.Name):
        return None
    if size.value not in kernel.parameters or any(size.value in s.writes for s in kernel.flow.statements):
        return None
    if size.value in kernel.constexprs:
        return None
    if not isinstance(total, cst.BinaryOperation) or not isinstance(total.operator, cst.Add):
        return None
    for start, lanes in ((total.left, total.right), (total.right, total.left)):
        block = _block(kernel, lanes)
        if block is not None and _is_multiple(kernel, start, block):
            return size.value, block
    return None


def _block(kernel: TritonKernel, lanes: cst.BaseExpression) -> str | None:
    if not isinstance(lanes, cst.Call) or not kernel.is_call(lanes, "arange") or len(lanes.args) != 2:
        return None
    low, high = lanes.args[0].value, lanes.args[1].value
    is_block = isinstance(high, cst.Name) and high.value in kernel.constexprs
    return kernel.source.code(high) if is_block and kernel.source.code(low) == "0" else None


def _is_multiple(kernel: TritonKernel, start: cst.BaseExpression, block: str) -> bool:
    if not isinstance(start, cst.BinaryOperation) or not isinstance(start.operator, cst.Multiply):
        return False
    return block in (kernel.source.code(start.left), kernel.source.code(start.right))
