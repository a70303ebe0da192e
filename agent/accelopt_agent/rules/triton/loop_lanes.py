"""Give a tile the neighbouring elements that a loop walks one by one while its lanes lie a row apart."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable, unwrapped
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.block_size import passed
from accelopt_agent.rules.analysis.triton.kernel import TL, TritonKernel, integer
from accelopt_agent.rules.analysis.triton.lane_shape import is_elementwise
from accelopt_agent.rules.analysis.triton.masked_lanes import access
from accelopt_agent.rules.analysis.triton.storage import apart
from accelopt_agent.rules.analysis.triton.values import Evaluation, Value, root
from accelopt_profiling.triton.functions.table import functions_of

#: A tile of more elements than this does not fit into the registers of four warps.
_MOST = 16384


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.is_autotuned:
        return
    values = Evaluation(kernel, apart(kernel))
    values.walk(kernel.subject.function.body.body)
    for statement in kernel.flow.statements:
        loop = statement.node
        if isinstance(loop, cst.For) and _is_elementwise(kernel, loop):
            edits = _tiled(kernel, values, loop)
            if edits is not None:
                turns = f"one in each turn of the loop over {loop_variable(loop)}"
                yield Rewrite(tuple(edits), f"Load and store neighbouring elements together, not {turns}.")


def _is_elementwise(kernel: TritonKernel, loop: cst.For) -> bool:
    """Return whether all accesses of the kernel are in the loop, and its turns share nothing: plain assignments whose
    variables nothing else reads, and stores."""
    flow, variable = kernel.flow, loop_variable(loop)
    body = [s for s in flow.simple() if s.block is loop.body]
    if variable is None or len(body) != len(loop.body.body):
        return False
    bound: set[str] = {variable}
    for statement in body:
        is_known = isinstance(statement.target, cst.Name) or kernel.is_call(
            _expression(statement.node), "store"
        )
        inside = {n for s in body for n in s.writes}
        if not is_known or statement.reads & inside - bound:
            return False
        bound |= statement.writes
    outside = [n for n in flow.names if n.value in bound and loop not in kernel.source.parents(n)]
    calls = kernel.source.walk(kernel.function.body, cst.Call)
    return not outside and all(_is_plain(kernel, call, loop) for call in calls)


def _expression(node: cst.CSTNode) -> cst.CSTNode | None:
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
    return small.value if isinstance(small, cst.Expr) else None


def _is_plain(kernel: TritonKernel, call: cst.Call, loop: cst.For) -> bool:
    """Return whether a call computes lane by lane. A load or store of the loop does."""
    if kernel.is_call(call, "load", "store"):
        return loop in kernel.source.parents(call)
    path = kernel.names.path(call.func)
    if path is None:
        method = isinstance(call.func, cst.Attribute) and call.func.attr.value == "to"
        return method or kernel.source.code(call.func) in ("range", "float", "min", "max")
    name = path.removeprefix(f"{TL}.")
    return is_elementwise(path) or name in functions_of("place", "grid", "range") | {"range", "static_range"}


def _tiled(kernel: TritonKernel, values: Evaluation, loop: cst.For) -> list[ByteEdit] | None:
    """Return the edits that make the loop's variable a second axis of lanes; None where turns might meet."""
    source, call = kernel.source, loop.iter
    if not isinstance(call, cst.Call) or len(call.args) != 1:
        return None
    count, ranges = call.args[0].value, kernel.calls("arange")
    sizes = [_size(kernel, node) for node in (count, *(r.args[-1].value for r in ranges))]
    lanes = {value for r in ranges if (value := values.of(r)) is not None}
    if None in sizes or len(sizes) < 2 or len(lanes) != 1:
        return None
    if (sizes[0] or 0) * (sizes[1] or 0) > _MOST:
        return None
    turn, (lane,) = values.make("iteration", loop), lanes
    accesses = kernel.calls("load", "store")
    if not all(_is_row_apart(values, c, lane, turn) for c in accesses) or _meet(kernel, values):
        return None
    line = f"{source.code(loop.target)} = {kernel.spell('arange')}(0, {source.code(count)})[None, :]"
    header = unwrapped(source, loop)
    if not header:
        return None
    start = header[0]
    edits = [ByteEdit(start.start, start.end, f"{start.text}{source.indent(loop)}{line}\n"), *header[1:]]
    return edits + [ByteEdit(source.end(r), source.end(r), "[:, None]") for r in ranges]


def _size(kernel: TritonKernel, node: cst.BaseExpression) -> int | None:
    """Return the power of two that a count or the end of a range is at every launch."""
    numbers = {integer(node)}
    if isinstance(node, cst.Name) and node.value in kernel.constexprs and kernel.launches:
        numbers = {integer(passed(kernel, launch, node.value)) for launch in kernel.launches}
    size = numbers.pop() if len(numbers) == 1 else None
    return size if size is not None and size > 1 and not size & (size - 1) else None


def _is_row_apart(values: Evaluation, call: cst.Call, lane: Value, turn: Value) -> bool:
    """Return whether an access is at ``rows * width + column``, rows by lane, columns by turn, and leaves out columns
    from the width on: then no two lanes and turns meet, and neighbouring turns are neighbours in memory."""
    pointer, mask = access(values, call)
    if pointer is None or mask is None:
        return False
    terms = values.terms(pointer)
    wide = [p for p in terms if lane in p]
    if len(wide) != 1 or len(wide[0]) != 2 or terms[wide[0]] != 1 or terms.get((turn,)) != 1:
        return False
    (width,) = (v for v in wide[0] if v is not lane)
    if any(turn in v.parts() or lane in v.parts() for p in terms for v in p if p not in (wide[0], (turn,))):
        return False
    columns = (v.args[0] for v in _conditions(mask) if v.op == "LessThan" and v.args[1] is width)
    return any(
        turn in v.parts() and lane not in v.parts() and values.terms(v).get((turn,)) == 1 for v in columns
    )


def _conditions(mask: Value) -> Iterator[Value]:
    if mask.op == "BitAnd":
        for side in mask.args:
            yield from _conditions(side)
    else:
        yield mask


def _meet(kernel: TritonKernel, values: Evaluation) -> bool:
    """Return whether a turn may load what another has stored: from the same tensor at another address."""
    never_overlap = apart(kernel)
    loads, stores = ([access(values, c)[0] for c in kernel.calls(kind)] for kind in ("load", "store"))
    for stored in stores:
        for loaded in loads:
            one, other = root(values, stored), root(values, loaded)
            if stored is not loaded and (one is None or other is None or not never_overlap(one, other)):
                return True
    return False
