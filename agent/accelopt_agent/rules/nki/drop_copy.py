"""Leave out a copy: write where the value is needed, or read what was copied."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.nki.elementwise import destination_type, pair, scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.rule_context import Rewrite


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for copy in kernel.of("nl.copy", "nisa.tensor_copy"):
        if copy.statement is None or kernel.code(copy.get("mask")) is not None:
            continue
        rewrite = _stored_where_needed(kernel, copy) or _read_directly(kernel, copy)
        if rewrite is not None:
            yield rewrite


def _stored_where_needed(kernel: NkiKernel, copy: NkiCall) -> Rewrite | None:
    """``t = copy(x)`` followed by ``tile[i] = t``, which copies again: ``tile[i] = copy(x)``."""
    assert copy.statement is not None
    reader = kernel.flow.only_reader(copy.statement)
    if reader is None or not isinstance(copy.statement.target, cst.Name):
        return None
    value, statement = reader
    if statement.value is not value or not isinstance(statement.target, cst.Subscript):
        return None
    if not kernel.flow.unchanged(copy.statement, statement, kernel.flow.variables(copy.call)):
        return None
    edits = (kernel.source.replace(value, kernel.source.code(copy.call)), *kernel.without(copy))
    return Rewrite(
        edits, f"Copy straight into {kernel.source.code(statement.target)}, not through a tile of its own."
    )


def _read_directly(kernel: NkiKernel, copy: NkiCall) -> Rewrite | None:
    """``y = f(copy(x))`` where ``f`` is arithmetic on VectorE or ScalarE, which read PSUM as well as SBUF."""
    assert copy.statement is not None
    reader = kernel.flow.only_reader(copy.statement)
    if reader is None or not _in_float32(kernel, copy):
        return None
    value, statement = reader
    consumer = next((i for i in kernel.instructions if i.statement is statement), None)
    if consumer is None or not (scalar_steps(kernel, consumer) or pair(kernel, consumer)):
        return None
    source = copy.get("src")
    if source is None or not _whole_tile(kernel, source):
        return None
    if kernel.producer(value, statement) is not copy:
        return None
    edits = (kernel.source.replace(value, kernel.source.code(source)), *kernel.without(copy))
    return Rewrite(edits, f"Read {kernel.source.code(source)} where its copy was read.")


def _in_float32(kernel: NkiKernel, copy: NkiCall) -> bool:
    """Return whether the copy asks for no type, or for the one that arithmetic is done in."""
    if kernel.dialect.mutates:
        return (destination_type(kernel, copy) or "").rpartition(".")[2] == "float32"
    dtype = copy.get("dtype")
    return dtype is None or kernel.path(dtype) in (f"{NL}.float32", "numpy.float32")


def _whole_tile(kernel: NkiKernel, node: cst.BaseExpression) -> bool:
    """Return whether ``node`` starts at partition 0: a part that does not may have been copied to line up with its
    partner."""
    if isinstance(node, cst.Name):
        return True
    if not isinstance(node, cst.Subscript) or len(node.slice) < 2:
        return False
    for element in node.slice[:-1]:
        index = element.slice
        if isinstance(index, cst.Slice):
            return kernel.code(index.lower) in (None, "0")
        if isinstance(index, cst.Index) and isinstance(index.value, cst.Subscript):
            call = index.value.value  # nl.arange(n)[:, None], with nothing added to it
            return isinstance(call, cst.Call) and kernel.path(call.func) == f"{NL}.arange"
    return False
