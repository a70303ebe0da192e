"""Recognizes parts of rows that a loop takes one after the other: ``c * W + arange(W)`` for each iteration c."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape, tile


@dataclass(frozen=True)
class RowParts:
    """``part`` is the index expression of one iteration of ``loop``, ``offset`` its first column as code, ``all`` the
    index of the whole row; ``before`` are the other indices, ``rows`` and ``width`` the sizes of one part, ``length``
    that of all. ``columns`` is the index of a part's columns from 0 on."""

    loop: cst.For
    tensor: str
    before: tuple[str, ...]
    rows: str
    width: str
    length: str
    offset: str
    arange: str

    @property
    def whole(self) -> str:
        """The rows in full, in the tensor."""
        return f"{self.tensor}[{', '.join([*self.before, f'{self.arange}({self.length})[None, :]'])}]"

    def part(self, name: str) -> str:
        """Return the part of the current iteration of a tile ``name`` that holds the rows in full."""
        return f"{name}[{self.arange}({self.rows})[:, None], {self.offset} + {self.arange}({self.width})[None, :]]"


def parts(kernel: NkiKernel, node: cst.BaseExpression, loops: tuple[cst.For, ...]) -> RowParts | None:
    """Return the part of its rows that ``node`` takes in one of ``loops``; its last index must depend on that loop
    alone."""
    arange = kernel.spelled(f"{NL}.arange")
    found: TileShape | None = tile(kernel, node)
    if (
        not isinstance(node, cst.Subscript)
        or not isinstance(node.value, cst.Name)
        or found is None
        or arange is None
    ):
        return None
    last = node.slice[-1].slice
    if not isinstance(last, cst.Index) or not isinstance(last.value, cst.BinaryOperation):
        return None
    product, columns = last.value.left, last.value.right
    if not isinstance(last.value.operator, cst.Add) or not isinstance(product, cst.BinaryOperation):
        return None
    count, width = product.left, product.right
    loop = next(
        (at for at in loops if isinstance(count, cst.Name) and loop_variable(at) == count.value), None
    )
    if loop is None or not isinstance(product.operator, cst.Multiply) or not _is_columns(kernel, columns):
        return None
    if (
        kernel.source.code(width) != found.columns
        or not isinstance(loop.iter, cst.Call)
        or len(loop.iter.args) != 1
    ):
        return None
    others = node.slice[:-1]
    if any(loop_variable(loop) in kernel.flow.variables(other) for other in others):
        return None
    times = kernel.source.code(loop.iter.args[0].value)
    length = f"{factor(found.columns)} * {factor(times)}"
    before = tuple(kernel.source.code(other).strip(", ") for other in others)
    offset = kernel.source.code(product)
    return RowParts(loop, node.value.value, before, found.rows, found.columns, length, offset, arange)


def _is_columns(kernel: NkiKernel, node: cst.BaseExpression) -> bool:
    """``arange(n)[None, :]`` or a variable bound to it."""
    if isinstance(node, cst.Name) and node.value in kernel.index_variables:
        bound = [s for s in kernel.flow.simple() if s.binds(node.value)]
        return len(bound) == 1 and bound[0].value is not None and _is_columns(kernel, bound[0].value)
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Call):
        return False
    indices = [kernel.source.code(e).strip(", ") for e in node.slice]
    return kernel.path(node.value.func) == f"{NL}.arange" and indices == ["None", ":"]
