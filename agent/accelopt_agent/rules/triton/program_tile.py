"""Let each program take a tile of several rows, or of several columns, where it takes a single one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.block_size import grid_axis, is_shared, meaning, passed
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer
from accelopt_agent.rules.analysis.triton.lane_shape import Shapes
from accelopt_agent.rules.analysis.triton.values import Evaluation

#: Rows, or columns, for each program to take.
_COUNTS = (16, 8, 32, 4)
#: Elements of a tile whose rows are as long as the launch computes: fewer rows where those are longer.
_ELEMENTS = (1024, 2048, 4096)
#: A tile of so many bytes, loaded and stored, leaves the registers of four warps room for what is computed.
_TILE_BYTES = 65536
#: Percent of the sectors' bytes in use below which neighbouring programs share sectors.
_SHARED_SECTORS = 60.0


@dataclass(frozen=True)
class _Axis:
    """``program`` is the statement ``name = tl.program_id(axis)``.

    ``extent`` is how many programs the launch runs.
    """

    statement: cst.CSTNode
    call: cst.Call
    name: str
    number: int


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if len(kernel.launches) != 1:
        return
    if any(p.default is not None for p in kernel.source.walk(kernel.subject.function.params, cst.Param)):
        return  # what is passed from now on could not stand behind a default
    launch = kernel.launches[0]
    values = Evaluation(kernel)
    values.walk(kernel.subject.function.body.body)
    for axis in _axes(kernel):
        limit = None if _splits_into_blocks(kernel, values, axis) else _limit(kernel, launch, axis)
        shapes = Shapes(kernel, values, axis.name) if limit is not None else None
        if limit is None or shapes is None:
            continue
        inside = shapes.edits(limit[0])
        if inside is None:
            continue
        length = _computed_length(kernel, launch, values, limit[1]) if shapes.has_lanes else None
        if length is not None:
            counts, has_lanes = list(_ELEMENTS) if _worthwhile(kernel.subject) else [], True
        else:
            counts, has_lanes = _worthwhile(kernel.subject), shapes.has_lanes
        for number, count in enumerate(counts):
            rewrite = _rewrite(
                kernel,
                launch,
                axis=axis,
                limit=limit,
                inside=inside,
                has_lanes=has_lanes,
                count=count,
                length=length,
            )
            yield replace(rewrite, variant=number > 0)


def _computed_length(
    kernel: TritonKernel, launch: KernelLaunch, values: Evaluation, extent: cst.BaseExpression
) -> str | None:
    """Return what the launch computes for the length of a row's lanes, as text that holds before the grid is made; None
    where it is a number, or not known there."""
    lengths = {values.of(call.args[-1].value) for call in kernel.calls("arange") if call.args}
    length = lengths.pop() if len(lengths) == 1 else None
    argument = (
        launch.arguments.get(str(length.args[0])) if length is not None and length.op == "parameter" else None
    )
    if (
        argument is None
        or passed(kernel, launch, str(length.args[0]) if length is not None else "") is not None
    ):
        return None
    statement = _statement(kernel, extent)
    own = (
        launch.function is not None
        and statement is not None
        and statement in kernel.source.parents(launch.call)
    )
    computed = argument if isinstance(argument, cst.Name) else None
    if not own and (computed is None or not _assigned_before(kernel, launch, computed.value, extent)):
        return None
    return kernel.source.code(argument)


def _statement(kernel: TritonKernel, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
    lines = (p for p in kernel.source.parents(node) if isinstance(p, cst.SimpleStatementLine))
    return next(lines, None)


def _assigned_before(kernel: TritonKernel, launch: KernelLaunch, name: str, place: cst.CSTNode) -> bool:
    assign = kernel.assigned(launch, name)
    return assign is not None and kernel.source.end(assign) < kernel.source.start(place)


def _splits_into_blocks(kernel: TritonKernel, values: Evaluation, axis: _Axis) -> bool:
    """Return whether programs take neighbouring blocks of one range: there a larger block does as well as a tile."""
    program = values.of(axis.call)
    for call in kernel.calls("arange"):
        lane = values.of(call)
        length = values.of(call.args[-1].value) if call.args else None
        if program is None or lane is None or length is None:
            return True
        start = values.terms(values.product(program, length))
        for node in kernel.source.walk(kernel.function.body, cst.BinaryOperation):
            terms = values.terms(value) if (value := values.of(node)) is not None else {}
            if terms.get((lane,)) == 1 and all(
                terms.get(product) == count for product, count in start.items()
            ):
                return True
    return False


def _counts_blocks(kernel: TritonKernel, count: cst.BaseExpression) -> bool:
    """Return whether a number of programs was rounded up: it counts blocks, not rows."""
    if any("cdiv" in kernel.source.code(c.func) for c in kernel.source.walk(count, cst.Call)):
        return True
    divided = kernel.source.walk(count, cst.BinaryOperation)
    return any(
        isinstance(d.operator, cst.FloorDivide) and isinstance(d.left, cst.BinaryOperation) for d in divided
    )


def _worthwhile(subject: RuleContext) -> list[int]:
    """Return the counts to try: of rows as long as measured, those that fit the registers; all where programs
    share sectors or nothing was measured."""
    measured = subject.measurement.quantities if subject.measurement is not None else {}
    loaded, stored, programs, use = (
        measured[name].value if name in measured else None
        for name in ("load_bytes", "store_bytes", "programs", "sector_use")
    )
    if not loaded or not programs or (use is not None and use < _SHARED_SECTORS):
        return list(_COUNTS)
    per_program = (loaded + (stored or 0)) / programs
    return [count for count in _COUNTS if count * per_program <= _TILE_BYTES]


def _axes(kernel: TritonKernel) -> list[_Axis]:
    """Return the grid axes that one variable of the kernel stands for."""
    axes = []
    calls = kernel.calls("program_id")
    for statement in kernel.flow.simple():
        call = statement.value
        if (
            isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "to"
        ):
            call = call.func.value
        if not isinstance(call, cst.Call) or call not in calls or not isinstance(statement.target, cst.Name):
            continue
        number = integer(call.args[0].value) if call.args else 0
        name = statement.target.value
        once = [c for c in calls if (integer(c.args[0].value) if c.args else 0) == number] == [call]
        bound = [s for s in kernel.flow.simple() if name in s.writes]
        if number is not None and once and bound == [statement] and not statement.loops:
            axes.append(_Axis(statement.node, call, name, number))
    return axes


def _limit(
    kernel: TritonKernel, launch: KernelLaunch, axis: _Axis
) -> tuple[str, cst.BaseExpression, bool] | None:
    """Return the argument that is the number of programs along the axis, what the grid has for it, and
    whether the launch has to pass it yet."""
    grid_entry = grid_axis(kernel, launch, axis.number)
    if grid_entry is None or is_shared(kernel, launch, launch.grid):
        return None
    count = grid_entry[0]
    if any(n.value == grid_entry[1] for n in kernel.source.walk(count, cst.Name)):
        return None  # the grid depends on a block size
    if not isinstance(count, (cst.Name, cst.Subscript, cst.Attribute, cst.Call)):
        return None
    if isinstance(count, cst.Call) and not kernel.source.code(count.func).endswith((".size", ".numel")):
        return None
    if _counts_blocks(kernel, meaning(kernel, launch, count)):
        return None
    steady = [p for p in kernel.parameters if not any(p in s.writes for s in kernel.flow.statements)]
    for name in steady:
        argument = launch.arguments.get(name)
        if argument is not None and name not in kernel.constexprs and kernel.source.same(argument, count):
            return name, count, False
    new = next((n for n in (f"n_{_plural(axis.name)}", "n_programs") if n not in _taken(kernel)), None)
    return (new, count, True) if new is not None else None


def _plural(name: str) -> str:
    """Return a word for several of what a program's number stands for."""
    return "cols" if "col" in name.lower() else "rows"


def _taken(kernel: TritonKernel) -> set[str]:
    return {n.value for n in kernel.source.walk(kernel.function, cst.Name)}


def _rewrite(
    kernel: TritonKernel,
    launch: KernelLaunch,
    axis: _Axis,
    limit: tuple[str, cst.BaseExpression, bool],
    inside: list[ByteEdit],
    has_lanes: bool,
    count: int,
    length: str | None = None,
) -> Rewrite:
    """Return the kernel with ``count`` rows per program, or with ``length``, that of a row, as many as make ``count``
    elements."""
    source, (name, extent, is_new) = kernel.source, limit
    rows = _plural(axis.name).upper()
    block = next(n for n in (rows, f"{rows}_PER_PROGRAM", f"BLOCK_OF_{rows}") if n not in _taken(kernel))
    start = f"{source.code(axis.call)} * {block} + {kernel.spell('arange')}(0, {block})"
    edits = [source.replace(axis.call, f"({start})[:, None]" if has_lanes else start)]
    edits += [ByteEdit(e.start, e.end, e.text.replace(_ROWS, block)) for e in inside]
    parameters = list(source.walk(kernel.function.params, cst.Param))
    last = parameters[-1]
    parts = [part for part in (last.name, last.annotation, last.default) if part is not None]
    end = max(source.end(node) for part in parts for node in source.below(part))
    declared = [*([name] if is_new else []), f"{block}: {kernel.spell('constexpr')}"]
    edits += source.added(source.start(last.name), end, declared)
    cdiv = kernel.names.spelled("triton.cdiv")
    number, what = str(count), f"{count} {_plural(axis.name)} per program"
    statement = _statement(kernel, extent)
    outside: list[ByteEdit] = []
    if length is not None and statement is not None:
        around = launch.function or kernel.source.module
        words = {n.value for n in source.walk(around, cst.Name)}
        number = next(
            n for n in (f"{rows.lower()}_per_program", f"{rows.lower()}_of_a_program") if n not in words
        )
        outside.append(source.before(statement, f"{number} = {cdiv}({count}, {length})"))
        what = f"as many {_plural(axis.name)} per program as have {count} elements"
    arguments = [*([f"{name}={source.code(extent)}"] if is_new else []), f"{block}={number}"]
    final = launch.call.args[-1]
    outside += [
        source.replace(extent, f"{cdiv}({source.code(extent)}, {number})"),
        *source.added(source.start(final), source.end(final), arguments),
    ]
    summary = f"Work on {what} instead of one."
    return Rewrite(tuple(edits), summary, tuple(outside))


_ROWS = "{ROWS}"
