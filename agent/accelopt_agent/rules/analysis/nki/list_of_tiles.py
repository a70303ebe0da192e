"""Keeps one tile for each iteration of a loop in a Python list, as today's dialect does."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.nki.loop_invariants import Chain, chains
from accelopt_agent.rules.analysis.nki.resident_tiles import counted, in_loops, too_large
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.statement import Statement


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
