"""Infers the shape and the type of a tile, as expressions of the kernel."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.kernel import element as element_of
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.rule_context import RuleContext
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_profiling.nki.operations.table import operations

#: Bounds how far a value is followed back.
_DEPTH = 60

_SAME_AS_INPUT, _PAIRS, _REDUCTIONS = (
    frozenset(o.short for o in operations().values() if o.shape == shape)
    for shape in ("same", "pair", "reduced")
)


@dataclass(frozen=True)
class TileShape:
    """``rows`` (partitions) and ``columns`` as code.

    ``dtype`` as code, None where the syntax does not determine it.
    """

    rows: str
    columns: str
    dtype: str | None


def tile(kernel: NkiKernel, node: cst.BaseExpression, depth: int = 0) -> TileShape | None:
    """Return the shape and type of the tile ``node``. None where the syntax does not give two sizes."""
    shapes: dict[cst.BaseExpression, TileShape | None] = kernel.subject.analysis(_known)
    if depth > _DEPTH:
        return None
    if node not in shapes:
        shapes[node] = None  # a value made from itself has no shape that is known
        shapes[node] = _tile(kernel, node, depth)
    return shapes[node]


def _known(subject: RuleContext) -> dict[cst.BaseExpression, TileShape | None]:
    """Return the tiles found so far in one kernel."""
    return {}


def _tile(kernel: NkiKernel, node: cst.BaseExpression, depth: int) -> TileShape | None:
    if (held := element_of(kernel, node)) is not node:
        return tile(kernel, held, depth + 1)
    if isinstance(node, cst.Subscript):
        return _part(kernel, node, depth)
    if isinstance(node, cst.Name):
        return _variable(kernel, node.value, depth)
    if isinstance(node, (cst.Call, cst.BinaryOperation)):
        return _result(kernel, node, depth)
    return None


def _part(kernel: NkiKernel, node: cst.Subscript, depth: int) -> TileShape | None:
    """Return a part of a tensor, chosen by indices made of ``nl.arange``, each size being the one that its
    aranges have, or by two slices."""
    root = _root(node)
    dtype = _dtype_of(kernel, root, depth) if root else None
    if all(isinstance(element.slice, cst.Slice) for element in node.slice):
        extents = [_extent(kernel, element.slice) for element in node.slice]
        lengths = [extent for extent in extents if extent is not None]
        return TileShape(lengths[0], lengths[1], dtype) if len(lengths) == len(extents) == 2 else None
    sizes: dict[str, str] = {}
    for element in node.slice:
        if not isinstance(element.slice, cst.Index):
            return None
        for axis, size in aranges(kernel, element.slice.value):
            if sizes.setdefault(axis, size) != size:
                return None
    if set(sizes) != {"rows", "columns"}:
        return None
    return TileShape(sizes["rows"], sizes["columns"], dtype)


def _extent(kernel: NkiKernel, index: cst.BaseSlice) -> str | None:
    """Return how many elements a slice takes, whatever the loop variables are."""
    if not isinstance(index, cst.Slice) or index.upper is None or index.step is not None:
        return None
    extents: set[float | int | None] = set()
    for value in (0, 1):
        values = dict.fromkeys(kernel.loop_variables, value)
        low = 0 if index.lower is None else number(kernel.flow, index.lower, values)
        high = number(kernel.flow, index.upper, values)
        extents.add(None if low is None or high is None else high - low)
    extent = extents.pop()
    return str(extent) if not extents and isinstance(extent, int) and extent > 0 else None


def _root(node: cst.BaseExpression) -> str | None:
    """Return the tensor that a part is of, through ``reshape``."""
    while isinstance(node, (cst.Subscript, cst.Call)):
        if isinstance(node, cst.Subscript):
            node = node.value
        elif isinstance(node.func, cst.Attribute) and node.func.attr.value == "reshape":
            node = node.func.value
        else:
            return None
    return node.value if isinstance(node, cst.Name) else None


def aranges(kernel: NkiKernel, index: cst.BaseExpression) -> list[tuple[str, str]]:
    """("rows" or "columns", size) of each arange in an index, those behind variables included."""
    sizes: list[tuple[str, str]] = []
    for name in kernel.source.walk(index, cst.Name):
        if name.value in kernel.index_variables:
            bound = [s for s in kernel.flow.binding(name.value) if s.simple]
            if len(bound) != 1 or bound[0].value is None:
                return [("unknown", name.value)]
            sizes += aranges(kernel, bound[0].value)
    for node in kernel.source.walk(index, cst.Subscript):
        call = node.value
        if isinstance(call, cst.Call) and kernel.path(call.func) == f"{NL}.arange":
            axis = _axis(kernel.source.code(node)[len(kernel.source.code(call)) :])
            sizes.append((axis, kernel.source.code(call.args[0].value) if len(call.args) == 1 else "?"))
    return sizes


def _axis(brackets: str) -> str:
    return {"[:,None]": "rows", "[None,:]": "columns"}.get(brackets.replace(" ", ""), "unknown")


def _variable(kernel: NkiKernel, name: str, depth: int) -> TileShape | None:
    bound = kernel.flow.binding(name)
    shapes = {_bound(kernel, s, depth) for s in bound}
    return shapes.pop() if len(shapes) == 1 else None


def _bound(kernel: NkiKernel, statement: Statement, depth: int) -> TileShape | None:
    if statement.value is None or not isinstance(statement.target, cst.Name):
        return None
    return tile(kernel, statement.value, depth + 1)


def _result(kernel: NkiKernel, node: cst.Call | cst.BinaryOperation, depth: int) -> TileShape | None:
    path = kernel.path(node.func) if isinstance(node, cst.Call) else None
    module, _, function = (path or "").rpartition(".")
    name = function if module in (NL, NISA) else ""
    if isinstance(node, cst.Call) and name in ("transpose", "broadcast_to"):
        return _reshaped(kernel, node, name, depth)
    instruction = kernel.instruction(node)
    if instruction is None or instruction.destination is not None:
        return None
    shape = _of_instruction(kernel, instruction, depth)
    stated = kernel.code(instruction.get("dtype"))
    return TileShape(shape.rows, shape.columns, stated) if shape and stated else shape


def _reshaped(kernel: NkiKernel, node: cst.Call, name: str, depth: int) -> TileShape | None:
    data = tile(kernel, node.args[0].value, depth + 1) if node.args and node.args[0].keyword is None else None
    if data is None:
        return None
    if name == "transpose":
        return TileShape(data.columns, data.rows, data.dtype)
    shape = next((a.value for a in node.args[1:] if a.keyword is None or a.keyword.value == "shape"), None)
    sizes = _sizes(kernel, shape)
    return TileShape(sizes[0], sizes[1], data.dtype) if len(sizes) == 2 else None


def _sizes(kernel: NkiKernel, shape: cst.BaseExpression | None) -> list[str]:
    elements = [e.value for e in shape.elements] if isinstance(shape, cst.Tuple) else []
    inner = [
        e.args[0].value
        if isinstance(e, cst.Call) and kernel.path(e.func) == f"{NL}.par_dim" and e.args
        else e
        for e in elements
    ]
    return [kernel.source.code(e) for e in inner]


def _of_instruction(kernel: NkiKernel, instruction: NkiCall, depth: int) -> TileShape | None:
    name = instruction.path.rpartition(".")[2]
    if name in ("ndarray", "zeros", "ones", "full"):
        sizes = _sizes(kernel, instruction.get("shape"))
        return (
            TileShape(sizes[0], sizes[1], kernel.code(instruction.get("dtype"))) if len(sizes) == 2 else None
        )
    if name == "matmul":
        return _product(kernel, instruction, depth)
    inputs = [
        instruction.get(key) for key in ("src", "x", "data", "data0", "data1", "y", "data2", "operand1")
    ]
    tiles = [tile(kernel, i, depth + 1) for i in inputs if i is not None and kind(kernel, i) != "number"]
    shapes = [t for t in tiles if t is not None]
    if not shapes or len(shapes) != len(tiles):
        return None
    if name in _SAME_AS_INPUT:
        return shapes[0]
    if name in _REDUCTIONS:
        return TileShape(shapes[0].rows, "1", shapes[0].dtype)
    return _together(kernel, shapes) if name in _PAIRS else None


def _product(kernel: NkiKernel, instruction: NkiCall, depth: int) -> TileShape | None:
    """TensorE sums in float32 (PSUM)."""
    x, y = (tile(kernel, instruction[n], depth + 1) for n in ("x", "y"))
    if x is None or y is None:
        return None
    turned = kernel.code(instruction.get("transpose_x")) == "True"
    float32 = kernel.spelled(f"{NL}.float32")
    return TileShape(x.columns if turned else x.rows, y.columns, float32)


def _together(kernel: NkiKernel, tiles: list[TileShape]) -> TileShape | None:
    rows = {t.rows for t in tiles} - {"1"} or {"1"}
    columns = {t.columns for t in tiles} - {"1"} or {"1"}
    if len(rows) != 1 or len(columns) != 1:
        return None
    dtypes = {t.dtype for t in tiles}
    widest = None if None in dtypes else kernel.spelled(f"{NL}.float32")  # no operand has more precision
    return TileShape(rows.pop(), columns.pop(), dtypes.pop() if len(dtypes) == 1 else widest)


def _dtype_of(kernel: NkiKernel, name: str, depth: int) -> str | None:
    if name in kernel.arguments:
        return f"{name}.dtype"
    for statement in kernel.flow.simple():
        if statement.binds(name) and isinstance(statement.value, cst.Call):
            instruction = kernel.instruction(statement.value)
            if instruction is not None and instruction.get("dtype") is not None:
                return kernel.code(instruction["dtype"])
    shape = _variable(kernel, name, depth + 1)
    return shape.dtype if shape else None
