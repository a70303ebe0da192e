"""Give ``tl.dot`` its operands in the type they are loaded in: tensor cores multiply 16-bit numbers exactly, and faster
than the float32 that they were cast to."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.kernel import TL, TritonKernel


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    dots = kernel.calls("dot")
    casts: dict[cst.Call, list[ByteEdit]] = {}
    for dot in dots:
        operands = [_cast(kernel, dot, a.value) for a in _operands(dot)]
        if len(operands) == 2 and all(operands) and _accumulates_in_float32(dot):
            casts[dot] = [edit for edits in operands for edit in edits or ()]
    edits = list(dict.fromkeys(edit for operand_edits in casts.values() for edit in operand_edits))
    if edits:
        yield Rewrite(
            tuple(edits), "Multiply in the type that the operands are loaded in; tl.dot adds in float32."
        )


def _operands(dot: cst.Call) -> list[cst.Arg]:
    placed = [a for a in dot.args if a.keyword is None][:2]
    keywords = [a for a in dot.args if a.keyword is not None and a.keyword.value in ("input", "other")]
    return [*placed, *keywords]


def _accumulates_in_float32(dot: cst.Call) -> bool:
    """Return whether the result stays float32: that is what the product of 16-bit operands is by default."""
    return not any(a.keyword is not None and a.keyword.value == "out_dtype" for a in dot.args)


def _cast(kernel: TritonKernel, dot: cst.Call, operand: cst.BaseExpression) -> list[ByteEdit] | None:
    """Return the edits that take away the cast of a loaded operand.

    None where it has none, or where its value is used otherwise too.
    """
    transposed = _transposed(kernel, operand)
    if transposed is not None:
        return _cast(kernel, dot, transposed)
    if isinstance(operand, cst.Call) and (inner := _cast_to_float32(kernel, operand)) is not None:
        return [_without(kernel, operand, inner)] if _is_loaded(kernel, inner) else None
    if not isinstance(operand, cst.Name):
        return None
    definition = kernel.flow.definition(operand)
    if definition is None or not isinstance(definition.value, cst.Call):
        return None
    inner = _cast_to_float32(kernel, definition.value)
    uses = kernel.flow.uses_after(definition)
    if inner is None or not _is_loaded(kernel, inner) or uses is None:
        return None
    return (
        [_without(kernel, definition.value, inner)]
        if all(_only_multiplied(kernel, u) for u in uses)
        else None
    )


def _without(kernel: TritonKernel, cast: cst.Call, inner: cst.BaseExpression) -> ByteEdit:
    return ByteEdit(kernel.source.end(inner), kernel.source.end(cast), "")


def _cast_to_float32(kernel: TritonKernel, call: cst.Call) -> cst.BaseExpression | None:
    """``x`` of ``x.to(tl.float32)``."""
    function = call.func
    if not isinstance(function, cst.Attribute) or function.attr.value != "to" or len(call.args) != 1:
        return None
    if getattr(function.value, "lpar", ()):
        return None
    return function.value if kernel.names.path(call.args[0].value) == f"{TL}.float32" else None


def _transposed(kernel: TritonKernel, node: cst.BaseExpression) -> cst.BaseExpression | None:
    if isinstance(node, cst.Attribute) and node.attr.value == "T":
        return node.value
    return node.args[0].value if isinstance(node, cst.Call) and kernel.is_call(node, "trans") else None


def _is_loaded(kernel: TritonKernel, node: cst.BaseExpression) -> bool:
    """Return whether a value is what a load gives, so that it has the type of a tensor in memory."""
    if isinstance(node, cst.Name):
        definition = kernel.flow.definition(node)
        return definition is not None and kernel.is_call(definition.value, "load")
    return kernel.is_call(node, "load")


def _only_multiplied(kernel: TritonKernel, use: cst.Name) -> bool:
    """Return whether a use is an operand of a ``tl.dot`` whose other operand loses its cast too."""
    at: cst.CSTNode = use
    above: cst.CSTNode | None = kernel.source.parent(at)
    while isinstance(above, (cst.Arg, cst.Attribute)) or kernel.is_call(above, "trans"):
        if isinstance(above, cst.Attribute) and above.attr.value != "T":
            return False
        assert above is not None
        at, above = above, kernel.source.parent(above)
    if not isinstance(above, cst.Call) or not kernel.is_call(above, "dot"):
        return False
    others = [a.value for a in _operands(above) if a is not at]
    return len(others) == 1 and _is_cast(kernel, others[0])


def _is_cast(kernel: TritonKernel, operand: cst.BaseExpression) -> bool:
    operand = _transposed(kernel, operand) or operand
    if isinstance(operand, cst.Name):
        definition = kernel.flow.definition(operand)
        operand = definition.value if definition is not None and definition.value is not None else operand
    inner = _cast_to_float32(kernel, operand) if isinstance(operand, cst.Call) else None
    return inner is not None and _is_loaded(kernel, inner)
