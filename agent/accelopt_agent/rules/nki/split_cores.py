"""Share the iterations of a loop between the cores of a launch: two in ``kernel[2](...)``, one where there is no grid.

A core has its own SBUF and PSUM. So all that is stored in HBM must be stored in that loop, by iterations that need
nothing of each other, and what else the loop makes must be of no use after it. What stands outside of it each core
does.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable, trip_count
from accelopt_agent.rules.analysis.nki.independence import independent
from accelopt_agent.rules.analysis.nki.kernel import NL, RANGES, NkiKernel
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_profiling.nki.operations.table import names

#: How many physical cores make a logical one at most.
_CORES = 2

#: What a kernel calls that is made for several programs.
_OF_PROGRAMS = names("program")


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    launches = _launches(kernel)
    if not launches and not _runs_on_cores(kernel):
        return
    calls = {kernel.path(c.func) for c in kernel.source.walk(kernel.subject.function.body, cst.Call)}
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("program_id", "num_programs", "program_ndim")}
    if calls & _OF_PROGRAMS or None in words.values() or any(map(kernel.flow.occurrences, ("core", "cores"))):
        return
    for statement in kernel.flow.statements:
        loop = statement.node
        if isinstance(loop, cst.For) and (edits := _shared(kernel, loop, words)):
            grid = [ByteEdit(at, at, f"[{_CORES}]") for at in launches]
            how = f", launched as {kernel.subject.function.name.value}[{_CORES}]" if grid else ""
            over = loop_variable(loop)
            yield Rewrite(
                tuple(edits), f"Share the iterations over {over} between two cores{how}.", tuple(grid)
            )


def _shared(kernel: NkiKernel, loop: cst.For, words: dict[str, str | None]) -> list[ByteEdit]:
    """Return the edits that give each core every second iteration. None where that would not be the same."""
    source, call = kernel.source, loop.iter
    if not isinstance(call, cst.Call) or (trip_count(kernel.flow, loop) or _CORES) < _CORES:
        return []
    if (kernel.path(call.func) or source.code(call.func)) not in RANGES or any(a.keyword for a in call.args):
        return []
    if not _stands_alone(kernel, loop) or not independent(kernel, loop):
        return []
    bounds = [source.code(a.value) for a in call.args]
    first = f"{bounds[0]} + " if len(bounds) > 1 else ""
    step = f" * {factor(bounds[2])}" if len(bounds) > 2 else ""
    header = f"range({first}core{step}, {bounds[min(1, len(bounds) - 1)]}, cores{step})"
    outermost = next(s.loops[0] if s.loops else loop for s in kernel.flow.statements if s.node is loop)
    pair = f"({words['num_programs']}(0), {words['program_id']}(0))"
    assignment = f"cores, core = {pair} if {words['program_ndim']}() != 0 else (1, 0)"
    return [source.before(outermost, assignment), source.replace(call, header)]


def _stands_alone(kernel: NkiKernel, loop: cst.For) -> bool:
    """Return whether a loop stores all that the kernel returns, which nothing reads, and leaves nothing else behind."""
    flow, source = kernel.flow, kernel.source
    outputs = {name for s in flow.simple() if (name := _output(kernel, s)) is not None}
    inside = [s for s in flow.statements if loop in s.loops]
    written = set().union(*(s.writes for s in inside))
    if not outputs & written or any(s.stores & kernel.arguments for s in flow.simple()):
        return False
    around = next(s.loops for s in flow.statements if s.node is loop)
    for name in written - outputs:
        for use in flow.occurrences(name):
            above = set(source.parents(use))
            before = source.start(use) < source.start(loop) and not above & set(around)
            if loop not in above and not before:
                return False
    return all(_only_stored(kernel, use, loop) for name in outputs for use in flow.occurrences(name))


def _output(kernel: NkiKernel, statement: Statement) -> str | None:
    """Return the name of the tensor in shared HBM that a statement makes."""
    instruction = kernel.instruction(statement.value) if statement.value is not None else None
    buffer = instruction.get("buffer") if instruction is not None else None
    shared = buffer is not None and kernel.path(buffer) == f"{NL}.shared_hbm"
    return statement.target_name if shared and isinstance(statement.bound, cst.Name) else None


def _only_stored(kernel: NkiKernel, use: cst.Name, loop: cst.For) -> bool:
    """Return whether an output is made, stored to in the loop, asked for its type or shape, or returned."""
    statement, above = kernel.flow.statement_of(use), kernel.source.parent(use)
    if isinstance(above, cst.Attribute):
        return above.attr.value in ("dtype", "shape")
    if any(isinstance(p, cst.Return) for p in kernel.source.parents(use)):
        return True
    if statement is None or statement.target is None:
        return False
    if statement.bound is use:
        return _output(kernel, statement) is not None
    target: cst.BaseExpression = statement.target
    while isinstance(target, cst.Subscript):
        target = target.value
    return target is use and loop in statement.loops


def _launches(kernel: NkiKernel) -> list[int]:
    """Return where the function's name ends in the calls of the kernel in its file, outside of other kernels."""
    source, name = kernel.source, kernel.subject.function.name.value
    if "." in kernel.subject.kernel.name or "#" in kernel.subject.kernel.name:
        return []
    ends = []
    for call in source.walk(source.module, cst.Call):
        if not isinstance(call.func, cst.Name) or call.func.value != name:
            continue
        around = [p for p in source.parents(call) if isinstance(p, cst.FunctionDef)]
        hidden = any(p.name.value == name for f in around for p in source.walk(f.params, cst.Param))
        if not hidden and not any(f.decorators for f in around):
            ends.append(source.end(call.func))
    return ends


def _runs_on_cores(kernel: NkiKernel) -> bool:
    """Return whether the launch that was measured is one on several cores."""
    measured = kernel.subject.measurement
    return measured is not None and "cores" in measured.quantities
