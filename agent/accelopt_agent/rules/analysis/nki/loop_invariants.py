"""Finds values that a loop makes alike in every iteration, and keeps them.

A value is the statements that make it, and the loops that it depends on. Where instructions return tiles, one
assignment makes it; where they write into tiles, these are its allocation and all that write it, and today's dialect
keeps one tile for each iteration in a Python list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable, runs_each_iteration
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiKernel
from accelopt_agent.rules.analysis.nki.resident_tiles import counted, in_loops, too_large
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_profiling.nki.operations.table import names, operations

#: Functions of Beta 1 that compute from their arguments alone and write nothing else.
_PURE = frozenset(
    name.partition(".")[2]
    for name in names("index", "copy", "transpose", "broadcast", "elementwise", "reduction", "transfer")
    if operations()[name].returns_all("beta1")
) | {"reshape"}

#: What else than an instruction may make a tile, a position or a view in today's dialect.
_MAKERS = frozenset({f"{NL}.ndarray", f"{NL}.ds", f"{NL}.zeros"})
_METHODS = frozenset(
    {"reshape", "broadcast", "permute", "expand_dim", "squeeze_dim", "flatten_dims", "reshape_dim", "ap"}
    | {"rearrange"}
)
_BUILTINS = frozenset({"min", "max"})


@dataclass(frozen=True)
class Chain:
    """``statements``, in order, the last of which gives the value.

    They can run before ``outer``, once for each iteration of ``over``, loops inside of it.
    """

    statements: tuple[Statement, ...]
    outer: cst.For
    over: tuple[cst.For, ...]

    @property
    def last(self) -> Statement:
        return self.statements[-1]


def chains(kernel: NkiKernel, last: Statement) -> Iterator[Chain]:
    """Yield how the value that ``last`` gives a variable can be made before loops around it, the outermost first."""
    if not isinstance(last.target, cst.Name):
        return
    if not kernel.dialect.mutates and kernel.flow.uses_after(last) is None:
        return
    for position in range(len(last.loops)):
        if (chain := _before(kernel, last, position)) is not None:
            yield chain


def _before(kernel: NkiKernel, last: Statement, position: int) -> Chain | None:
    """Return the chain that ends with ``last`` before the loop at ``position``.

    None where it depends on that loop.
    """
    flow, outer, inside = kernel.flow, last.loops[position], last.loops[position + 1 :]
    steps = [*(flow.statement_of(loop) for loop in inside), last]
    if any(
        s is None or not runs_each_iteration(s, loop)
        for s, loop in zip(steps, last.loops[position:], strict=True)
    ):
        return None
    variables = {loop_variable(loop): loop for loop in inside}
    varying, group, todo, used = flow.varying(outer), [last], [last], set()
    while todo:
        step = todo.pop()
        made_of = step.node if kernel.dialect.mutates else step.value
        if made_of is None or not _is_pure(kernel, step, made_of):
            return None
        for name in flow.variables(made_of) & varying:
            if name in variables:
                used.add(name)
                continue
            makers = (_writers if kernel.dialect.mutates else _binding)(kernel, name, last)
            if makers is None:
                return None
            new = [s for s in makers if s not in group]
            group += new
            todo += new
    over = tuple(loop for loop in inside if loop_variable(loop) in used)
    if any(flow.variables(loop.iter) & varying for loop in over):
        return None
    ordered = tuple(s for s in flow.simple() if s in group)
    return Chain(ordered, outer, over) if ordered[-1] is last else None


def _binding(kernel: NkiKernel, name: str, last: Statement) -> list[Statement] | None:
    """Return the one statement before ``last`` that binds ``name`` for it."""
    bindings = [s for s in kernel.flow.before(last) if s.binds(name)]
    if (
        len(bindings) != 1
        or not isinstance(bindings[0].target, cst.Name)
        or kernel.flow.uses_after(bindings[0]) is None
    ):
        return None
    return bindings


def _writers(kernel: NkiKernel, name: str, last: Statement) -> list[Statement] | None:
    """Return the statements that give ``name`` its value for ``last``: one that binds it in the same block, and all
    that write its tensor. None where it is written elsewhere too."""
    flow = kernel.flow
    bound = flow.binding(name)
    if len(bound) != 1 or bound[0].block is not last.block:
        return None
    shared = flow.sharing([name])
    writers = [s for s in flow.simple() if shared & s.stores]
    before = [*flow.before(last), last]
    if any(s not in before for s in [bound[0], *writers]):
        return None
    return [bound[0], *(s for s in writers if s is not bound[0])]


def _is_pure(kernel: NkiKernel, statement: Statement, made_of: cst.CSTNode) -> bool:
    """Return whether a statement only makes tiles, positions or views, or is an instruction that writes a tile."""
    calls = [c.func for c in kernel.source.walk(made_of, cst.Call)]
    if not kernel.dialect.mutates:
        names = [f.attr.value if isinstance(f, cst.Attribute) else getattr(f, "value", "") for f in calls]
        return all(name in _PURE for name in names)
    product = any(i.statement is statement and i.path == f"{NISA}.nc_matmul" for i in kernel.instructions)
    if statement.assign is None and statement.call is None and not product:
        return False
    return all(_makes(kernel, function) for function in calls)


def _makes(kernel: NkiKernel, function: cst.BaseExpression) -> bool:
    path = kernel.path(function)
    if path is not None:
        return path in _MAKERS or (path.startswith(f"{NISA}.") and path in kernel.dialect.parameters)
    if isinstance(function, cst.Attribute):
        return function.attr.value in _METHODS
    return isinstance(function, cst.Name) and function.value in _BUILTINS


def kept_chains(kernel: NkiKernel) -> list[Chain]:
    """Return the chains of tiles that something else than a longer chain reads, longest way out first."""
    return kernel.subject.analysis(_kept_chains)


def _kept_chains(subject: RuleContext) -> list[Chain]:
    kernel = subject.analysis(NkiKernel)
    statements = [
        i.statement for i in kernel.instructions if i.destination is not None and i.statement is not None
    ]
    all_chains = [chain for statement in statements for chain in chains(kernel, statement)]
    return [c for c in all_chains if not any(_is_inside(kernel, c, other) for other in all_chains)]


def listed(kernel: NkiKernel) -> Iterator[Rewrite]:
    """Yield each chain over loops made once before the loop that repeats it, its tiles kept in a list."""
    for chain in kept_chains(kernel):
        if chain.over and (rewrite := _listed(kernel, chain)) is not None:
            yield rewrite


def hoisted(kernel: NkiKernel, verb: str, *, loads: bool) -> Iterator[Rewrite]:
    """Yield each chain over no loop run before the loop that repeats it: those that only load, or all others."""
    source = kernel.source
    for chain in kept_chains(kernel):
        gone = _removable(kernel, chain)
        if chain.over or loads_only(kernel, chain) is not loads or set(gone) != set(chain.statements):
            continue
        lines = "\n".join(source.with_comment(s.node) for s in chain.statements)
        edits = (source.before(chain.outer, lines), *(source.moved(s.node) for s in chain.statements))
        over, name = source.code(chain.outer.target), chain.last.target_name
        yield Rewrite(edits, f"{verb} {name} once before the loop over {over}, which does not change it.")


def loads_only(kernel: NkiKernel, chain: Chain) -> bool:
    """Return whether a chain's only instructions are transfers."""
    paths = {
        i.path for i in kernel.instructions if i.statement in chain.statements and i.destination is not None
    }
    return paths <= {"nisa.dma_copy", "nisa.dma_transpose"}


def _is_inside(kernel: NkiKernel, one: Chain, other: Chain) -> bool:
    """Return whether the other chain uses up what this one makes."""
    if (
        one is other
        or one.outer is not other.outer
        or one.last not in other.statements
        or one.last is other.last
    ):
        return False
    name = one.last.target_name
    readers = [s for s in kernel.flow.simple() if name in s.reads and s not in one.statements]
    return all(s in other.statements for s in readers)


def _listed(kernel: NkiKernel, chain: Chain) -> Rewrite | None:
    source, flow, last = kernel.source, kernel.flow, chain.last
    name = last.target_name or ""
    list_name, index = f"{name}_kept", _index(kernel, chain.over)
    if index is None or flow.occurrences(list_name) or not _fits(kernel, name, chain):
        return None
    edits: list[ByteEdit] = []
    for use in flow.occurrences(name):
        statement = flow.statement_of(use)
        if statement not in chain.statements:
            edits.append(source.replace(use, f"{list_name}[{index}]"))
    if not edits:
        return None
    lines = [source.with_comment(s.node) for s in chain.statements]
    filled = in_loops(kernel, chain.over, [*lines, f"{list_name}.append({name})"])
    edits.append(source.before(chain.outer, "\n".join([f"{list_name} = []", *filled])))
    edits += [source.moved(s.node) for s in _removable(kernel, chain)]
    over = source.code(chain.outer.target)
    return Rewrite(tuple(edits), f"Make {name} once before the loop over {over} and keep it in SBUF.")


def _fits(kernel: NkiKernel, name: str, chain: Chain) -> bool:
    """Return whether the tiles lie in SBUF and are not known to be too many for it."""
    allocation = kernel.flow.allocation(name)
    instruction = kernel.instruction(allocation.value) if allocation and allocation.value else None
    buffer = instruction.get("buffer") if instruction else None
    if (
        instruction is None
        or (buffer is not None and kernel.path(buffer) != f"{NL}.sbuf")
        or allocation is None
    ):
        return False
    assert allocation.value is not None
    shape = tile(kernel, allocation.value)
    counts = [counted(kernel, loop) or "1" for loop in chain.over]
    return shape is None or not too_large(kernel, [*counts, shape.rows, shape.columns])


def _removable(kernel: NkiKernel, chain: Chain) -> list[Statement]:
    """Return the statements of a chain that nothing but the chain and what reads its tile needs where they stand."""
    gone = {chain.last}
    name = chain.last.target_name
    for statement in reversed(chain.statements[:-1]):
        tile_name = statement.target_name
        readers = [
            s for s in kernel.flow.simple() if tile_name is not None and tile_name in s.reads | s.stores
        ]
        if tile_name == name or all(s in gone or s is statement for s in readers):
            gone.add(statement)
    return [s for s in chain.statements if s in gone]


def _index(kernel: NkiKernel, loops: tuple[cst.For, ...]) -> str | None:
    """Return the position in the list of the tile of the current iteration; None unless all loops count from 0."""
    index = ""
    for loop in loops:
        variable, count = loop_variable(loop), counted(kernel, loop)
        if variable is None or count is None:
            return None
        index = f"{factor(index)} * {factor(count)} + {variable}" if index else variable
    return index
