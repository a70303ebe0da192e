"""Classifies an operand of an NKI instruction: a number, a column of one value per partition, or a tile."""

from __future__ import annotations

from typing import Literal

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel, element
from accelopt_agent.rules.analysis.rule_context import RuleContext
from accelopt_agent.rules.analysis.statement import Statement, root_name
from accelopt_profiling.nki.operations.table import names

Kind = Literal["number", "column", "tile"]

#: Functions that rearrange a tile.
_TILE_MAKERS = names("broadcast", "transpose")

_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power)

#: Functions of Python, besides those of ``math``, that make a number of numbers.
_OF_NUMBERS = frozenset({"float", "int", "abs", "round", "min", "max", "len"})


def kind(kernel: NkiKernel, node: cst.BaseExpression, depth: int = 0) -> Kind | None:
    """Return the kind of ``node`` as an operand, or None when the syntax does not determine it."""
    kinds: dict[cst.BaseExpression, Kind | None] = kernel.subject.analysis(_known)
    if node not in kinds:
        own_kind = _kind(kernel, node, depth)
        if depth:
            return own_kind  # perhaps given up for its depth
        kinds[node] = own_kind
    return kinds[node]


def _known(subject: RuleContext) -> dict[cst.BaseExpression, Kind | None]:
    """Return the kinds found so far in one kernel."""
    return {}


def _kind(kernel: NkiKernel, node: cst.BaseExpression, depth: int) -> Kind | None:
    if number(kernel.flow, node) is not None:
        return "number"
    if depth > 12:
        return None
    held = element(kernel, node)
    if held is not node:
        return kind(kernel, held, depth + 1)
    if isinstance(node, cst.Subscript):
        return _kind_of_part(kernel, node)
    if isinstance(node, cst.Name):
        return _kind_of_variable(kernel, node.value, depth)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _ARITHMETIC):
        return _wider(kind(kernel, node.left, depth + 1), kind(kernel, node.right, depth + 1))
    if isinstance(node, cst.UnaryOperation):
        return kind(kernel, node.expression, depth + 1)
    if isinstance(node, cst.Attribute) and node.attr.value == "shape":
        return "number"
    if isinstance(node, cst.Call):
        called = kernel.path(node.func) or kernel.source.code(node.func)
        if called in _TILE_MAKERS:
            return "tile"
        if called in _OF_NUMBERS or called.startswith("math."):
            return "number"
        instruction = kernel.instruction(node)
        return _kind_of_result(kernel, instruction, depth) if instruction else None
    return None


def _wider(one: Kind | None, other: Kind | None) -> Kind | None:
    if one is None or other is None:
        return "tile" if "tile" in (one, other) else None
    order: list[Kind] = ["number", "column", "tile"]
    return max(one, other, key=order.index)


def _kind_of_variable(kernel: NkiKernel, name: str, depth: int) -> Kind | None:
    if name in kernel.arguments:
        # Tensors in HBM cannot be operands: an argument that is one must be a number.
        return "number" if name not in kernel.indexed_arguments else None
    kinds = set()
    for statement in kernel.flow.binding(name):
        kinds.add(_kind_of_binding(kernel, statement, depth))
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_binding(kernel: NkiKernel, statement: Statement, depth: int) -> Kind | None:
    if isinstance(statement.node, cst.For):
        return "number"
    value = statement.value
    if value is None:
        return None
    if isinstance(statement.target, cst.Tuple):
        return "number" if isinstance(value, cst.Attribute) and value.attr.value == "shape" else None
    return kind(kernel, value, depth + 1)


def _kind_of_part(kernel: NkiKernel, node: cst.Subscript) -> Kind | None:
    """Return a part of a tensor: a column if its last index picks one element, a tile otherwise."""
    if isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape":
        return "number"
    name = root_name(node)
    if name is None or name in kernel.index_variables:
        return None
    last = node.slice[-1].slice
    if isinstance(last, cst.Index):
        if isinstance(last.value, cst.Ellipsis):
            return kind(kernel, node.value)
        value = number(kernel.flow, last.value)
        return "column" if value is not None or _picks_one(kernel, last.value) else "tile"
    if not isinstance(last, cst.Slice):
        return None
    low = 0 if last.lower is None else number(kernel.flow, last.lower)
    high = number(kernel.flow, last.upper)
    return "column" if low is not None and high is not None and high - low == 1 else "tile"


def _picks_one(kernel: NkiKernel, node: cst.BaseExpression) -> bool:
    """Return an index made of loop variables, numbers and ``arange(1)`` only: it picks one element."""
    names = kernel.flow.variables(node)
    single = {n for n in names & kernel.index_variables if _is_single(kernel, n)}
    calls = any(True for _ in kernel.source.walk(node, cst.Call))
    return bool(names) and not calls and names <= kernel.loop_variables | single


def _is_single(kernel: NkiKernel, name: str) -> bool:
    """Return whether a position is ``arange(1)[None, :]``."""
    bound = [s for s in kernel.flow.binding(name) if s.simple]
    value = bound[0].value if len(bound) == 1 else None
    call = value.value if isinstance(value, cst.Subscript) else None
    return (
        isinstance(call, cst.Call)
        and kernel.path(call.func) == f"{NL}.arange"
        and len(call.args) == 1
        and number(kernel.flow, call.args[0].value) == 1
    )


def _kind_of_result(kernel: NkiKernel, instruction: NkiCall, depth: int) -> Kind | None:
    path, module = instruction.path, instruction.path.rpartition(".")[0]
    function = path.rpartition(".")[2]
    if path in (f"{NL}.load", f"{NL}.copy", f"{NISA}.tensor_copy"):
        return kind(kernel, instruction["src"], depth + 1)
    if function in ("ndarray", "zeros", "ones", "memset", "full"):
        shape = instruction.get("shape")
        last = shape.elements[-1].value if isinstance(shape, cst.Tuple) and shape.elements else None
        return "column" if number(kernel.flow, last) == 1 else "tile"
    if function == "tensor_reduce" or (module == NL and function in ("sum", "max", "min", "mean")):
        return "column"
    if function in ("matmul", "nc_matmul"):
        return "tile"
    data = next((a for n in ("data", "data0", "data1", "x") if (a := instruction.get(n)) is not None), None)
    other = instruction.get("data2") or instruction.get("y")
    one = kind(kernel, data, depth + 1) if data is not None else None
    return one if other is None else _wider(one, kind(kernel, other, depth + 1))
