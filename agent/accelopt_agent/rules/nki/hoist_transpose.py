"""Transpose the stationary operand of matmuls once, before the loop that uses it again and again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.rule_context import Rewrite


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for call in kernel.source.walk(kernel.subject.function.body, cst.Call):
        if kernel.path(call.func) == f"{NL}.matmul":
            rewrite = _transposed_before(kernel, call)
            if rewrite is not None:
                yield rewrite


def _transposed_before(kernel: NkiKernel, call: cst.Call) -> Rewrite | None:
    """``matmul(x[:, a:b], w)`` where only an inner loop changes ``a:b``, and the loop around it not ``x``."""
    flow, source = kernel.flow, kernel.source
    matmul, statement = kernel.instruction(call), flow.statement_of(call)
    if matmul is None or statement is None or set(matmul.args) != {"x", "y"}:
        return None
    x = matmul["x"]
    if not isinstance(x, cst.Subscript) or not isinstance(x.value, cst.Name) or len(x.slice) != 2:
        return None
    rows, columns = x.slice[0].slice, x.slice[1].slice
    if not isinstance(rows, cst.Slice) or rows.lower or rows.upper or not isinstance(columns, cst.Slice):
        return None
    used = flow.variables(x)
    over = [loop for loop in statement.loops if loop_variable(loop) in used]
    if len(over) != 1 or over[0] is not statement.loops[-1]:
        return None
    tiles, variable = over[0], loop_variable(over[0])
    outer = None
    for loop in reversed(statement.loops[:-1]):
        if used & flow.varying(loop) - {variable}:
            break
        outer = loop
    width = _width(kernel, columns, variable)
    if outer is None or width is None or variable is None or not isinstance(tiles.iter, cst.Call):
        return None
    if flow.variables(tiles.iter) & flow.varying(outer) or len(tiles.iter.args) != 1:
        return None
    words = {
        w: kernel.spelled(f"{NL}.{w}")
        for w in ("ndarray", "par_dim", "arange", "sbuf", "copy", "transpose", "matmul")
    }
    name = f"{x.value.value}_transposed"
    if None in words.values() or flow.occurrences(name):
        return None
    height = f"{x.value.value}.shape[0]"
    place = f"{name}[{variable}, {words['arange']}({width})[:, None], {words['arange']}({height})[None, :]]"
    shape = f"({source.code(tiles.iter.args[0].value)}, {words['par_dim']}({width}), {height})"
    lines = [
        f"{name} = {words['ndarray']}({shape}, dtype={x.value.value}.dtype, buffer={words['sbuf']})",
        f"for {variable} in {source.code(tiles.iter)}:",
        f"{source.step}{place} = {words['copy']}({words['transpose']}({source.code(x)}))",
    ]
    product = f"{words['matmul']}({place}, {source.code(matmul['y'])}, transpose_x=True)"
    edits = (source.before(outer, "\n".join(lines)), source.replace(call, product))
    over_text = source.code(outer.target)
    return Rewrite(
        edits, f"Transpose {x.value.value} once before the loop over {over_text}, not in each iteration."
    )


def _width(kernel: NkiKernel, columns: cst.Slice, variable: str | None) -> int | None:
    """Return how many columns the slice has, whatever the loop variable is.

    At most the 128 that TensorE transposes.
    """
    if columns.upper is None or columns.step is not None or variable is None:
        return None
    widths = set()
    for value in (0, 1):
        low = 0 if columns.lower is None else number(kernel.flow, columns.lower, {variable: value})
        high = number(kernel.flow, columns.upper, {variable: value})
        widths.add(None if low is None or high is None else high - low)
    width = widths.pop()
    return width if not widths and isinstance(width, int) and 0 < width <= 128 else None
