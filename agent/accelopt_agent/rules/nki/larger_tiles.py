"""Make the free dimension of tiles larger where a named constant sets it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor, number, number_of_text
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import is_string
from accelopt_profiling.nki.operations.table import operations

#: Elements per partition above which wider tiles gain nothing more.
_WIDEST = 8192

#: Functions whose operands have a width that the hardware limits.
_LIMITED = frozenset(o.short for o in operations().values() if o.limits or o.kind in ("product", "transpose"))


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    if _has_limited_tiles(kernel):
        return
    for name in _width_names(kernel):
        width = _value(kernel, name)
        if width is None:
            continue
        divided = _divided(kernel, name)
        for times in (2, 4, 7, 8):
            sizes = [size for _, text in divided if (size := number_of_text(kernel.flow, text)) is not None]
            fits = all(size % (width * times) == 0 for size in sizes)
            if divided and fits and width * times <= _WIDEST:
                yield _with_width(kernel, name, width * times, divided)


def _has_limited_tiles(kernel: NkiKernel) -> bool:
    calls = kernel.source.walk(kernel.subject.function, cst.Call)
    called = {(kernel.path(c.func) or "").rpartition(".")[2] for c in calls}
    attributes = {kernel.path(a) for a in kernel.source.walk(kernel.subject.function, cst.Attribute)}
    return bool(called & _LIMITED) or f"{NL}.psum" in attributes


def _value(kernel: NkiKernel, name: str) -> int | None:
    occurrences = kernel.flow.occurrences(name)
    value = number(kernel.flow, occurrences[0]) if occurrences else None
    return value if isinstance(value, int) else None


def _width_names(kernel: NkiKernel) -> list[str]:
    """Variables n with ``nl.arange(n)[None, :]`` or ``nl.ds(..., n)`` in the kernel, and no use as a number of
    partitions."""
    if kernel.dialect.mutates:
        return _widths_of_spans(kernel)
    wide: list[str] = []
    tall: set[str] = set()
    for subscript in kernel.source.walk(kernel.subject.function.body, cst.Subscript):
        call = subscript.value
        if not isinstance(call, cst.Call) or kernel.path(call.func) != f"{NL}.arange" or len(call.args) != 1:
            continue
        size, first = call.args[0].value, subscript.slice[0].slice
        if isinstance(size, cst.Name):
            is_row = (
                isinstance(first, cst.Index)
                and isinstance(first.value, cst.Name)
                and first.value.value == "None"
            )
            if is_row and size.value not in wide:
                wide.append(size.value)
            elif not is_row:
                tall.add(size.value)
    for call in kernel.source.walk(kernel.subject.function.body, cst.Call):
        if kernel.path(call.func) == f"{NL}.par_dim":
            tall |= {n.value for n in kernel.source.walk(call, cst.Name)}
    return [name for name in wide if name not in tall]


def _widths_of_spans(kernel: NkiKernel) -> list[str]:
    """Return the variables that are the last size of a tile and stand in a span or a slice, and the first size of
    none."""
    walk, body = kernel.source.walk, kernel.subject.function.body
    calls = list(walk(body, cst.Call))
    spans = [c for c in calls if kernel.path(c.func) == f"{NL}.ds" and len(c.args) == 2]
    shapes = [
        i["shape"] for i in kernel.instructions if i.path == f"{NL}.ndarray" and i.get("shape") is not None
    ]
    sizes = [[kernel.source.code(e.value) for e in s.elements] for s in shapes if isinstance(s, cst.Tuple)]
    last = {size[-1] for size in sizes}
    others = {name for size in sizes for name in size[:-1]}
    slices = [s for subscript in walk(body, cst.Subscript) for s in walk(subscript, cst.Slice)]
    widths = [kernel.source.code(span.args[1].value) for span in spans]
    widths += [name.value for s in slices for name in walk(s, cst.Name)]
    return [w for w in dict.fromkeys(widths) if w.isidentifier() and w in last and w not in others]


def _divided(kernel: NkiKernel, name: str) -> list[tuple[cst.CSTNode, str]]:
    """Return the expressions that the width divides: ``x`` of ``x // n`` and of ``range(0, x, n)``, with their
    statements."""
    expressions: list[tuple[cst.CSTNode, str]] = []
    for node in kernel.source.walk(kernel.subject.function.body, cst.BinaryOperation):
        is_division = isinstance(node.operator, cst.FloorDivide)
        if is_division and isinstance(node.right, cst.Name) and node.right.value == name:
            expressions.append((node, kernel.source.code(node.left)))
    for call in kernel.source.walk(kernel.subject.function.body, cst.Call):
        step = call.args[2].value if len(call.args) == 3 else None
        if (
            isinstance(step, cst.Name)
            and step.value == name
            and kernel.source.code(call.func).endswith("range")
        ):
            expressions.append((call, kernel.source.code(call.args[1].value)))
    return expressions


def _with_width(kernel: NkiKernel, name: str, width: int, divided: list[tuple[cst.CSTNode, str]]) -> Rewrite:
    """Give ``name`` the new value, and make sure that it divides what the old one did."""
    source, flow = kernel.source, kernel.flow
    chosen = _chosen_by_size(kernel, name, width, [size for _, size in divided])
    if chosen is not None:
        return Rewrite((chosen,), f"Make tiles {width} elements wide ({name}) where that divides the size.")
    edits: list[ByteEdit] = []
    bound = next((s for s in flow.simple() if s.binds(name)), None)
    if bound is not None and isinstance(bound.target, cst.Name) and bound.value is not None:
        edits.append(source.replace(bound.value, str(width)))
        local = None
    else:
        local = f"{name} = {width}"
    checks = []
    for node, size in divided:
        statement = flow.statement_of(node)
        check = f"assert {factor(size)} % {name} == 0"
        if statement is not None and check not in checks:
            checks.append(check)
            edits.append(source.before(statement.node, check))
    if local is not None:
        edits.append(source.before(_first_statement(kernel), local))
    return Rewrite(tuple(edits), f"Make tiles {width} elements wide ({name}).")


def _chosen_by_size(kernel: NkiKernel, name: str, width: int, sizes: list[str]) -> ByteEdit | None:
    """Return a choice before the first use of a width that the module sets, if the sizes are known there at
    run time only."""
    flow, source, old = kernel.flow, kernel.source, _value(kernel, name)
    unknown = [size for size in dict.fromkeys(sizes) if number_of_text(flow, size) is None]
    candidates = flow.statements if kernel.dialect.mutates else flow.simple()
    uses = [s for s in candidates if s.block is kernel.subject.function.body and name in s.reads]
    if not unknown or not uses or any(s.binds(name) for s in flow.simple()):
        return None
    ready = set(kernel.arguments).union(*(s.writes for s in flow.before(uses[0])))
    if any(not size.isidentifier() or size not in ready for size in unknown):
        return None
    fits = " and ".join(f"{size} % {width} == 0" for size in unknown)
    return source.before(uses[0].node, f"{name} = {width} if {fits} else {old}")


def _first_statement(kernel: NkiKernel) -> cst.CSTNode:
    body = kernel.subject.function.body.body
    return next((node for node in body if not is_string(node)), body[-1])
