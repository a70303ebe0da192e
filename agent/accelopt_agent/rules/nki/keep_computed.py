"""Compute what a loop computes in every iteration once, before it, and keep all of it in SBUF; stationary tiles of
matrix products transposed.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.loop_invariants import Chain, chains, listed
from accelopt_agent.rules.analysis.nki.resident_tiles import ResidentTiles, keep, read_kept
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape, tile
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement


def keep_computed(kernel: NkiKernel) -> Iterator[Rewrite]:
    if kernel.dialect.mutates:
        yield from listed(kernel)
        return
    longest = [
        c for s in kernel.flow.simple() if (c := next(chains(kernel, s), None)) and has_load(kernel, c)
    ]
    for chain in longest:
        if not any(_is_inside(kernel, chain, other) for other in longest):
            rewrite = _kept(kernel, chain)
            if rewrite is not None:
                yield rewrite


def has_load(kernel: NkiKernel, chain: Chain) -> bool:
    """Return whether the chain loads, and under no mask: what a mask leaves out would be kept as well."""
    calls = [c for s in chain.statements for c in kernel.source.walk(s.node, cst.Call)]
    masked = any(a.keyword is not None and a.keyword.value == "mask" for c in calls for a in c.args)
    return not masked and any(kernel.path(c.func) == f"{NL}.load" for c in calls)


def _is_inside(kernel: NkiKernel, one: Chain, other: Chain) -> bool:
    """Return whether the other chain uses up what this one makes."""
    if one is other or one.last not in other.statements or one.outer is not other.outer:
        return False
    uses = kernel.flow.uses_after(one.last) or []
    return all(kernel.flow.statement_of(use) in other.statements for use in uses)


def _kept(kernel: NkiKernel, chain: Chain) -> Rewrite | None:
    """Replace every use of the value by the kept tile.

    Its loops run once more, before, to fill the tensor.
    """
    source, last = kernel.source, chain.last
    name = last.target_name or ""
    if not chain.over:
        return None  # the rules that hoist do that
    assert last.value is not None
    resident = keep(kernel, f"{name}_kept", tile(kernel, last.value), chain.over)
    uses = kernel.flow.uses_after(last)
    edits = [] if resident is None or uses is None else read_kept(kernel, resident, uses)
    if resident is None or not edits:
        return None
    moved = [source.with_comment(s.node) for s in chain.statements[:-1]]
    value = source.with_comment(last.node, f"{resident.place(kernel)} = {source.code(last.value)}")
    lines = resident.filled(kernel, [*moved, value])
    edits += [source.before(chain.outer, lines), *removed(kernel, chain)]
    over = source.code(chain.outer.target)
    return Rewrite(tuple(edits), f"Make {name} once before the loop over {over} and keep it in SBUF.")


def removed(kernel: NkiKernel, chain: Chain) -> list[ByteEdit]:
    """Return the edits that take the chain's statements away where they stood, but for those that others
    read."""
    gone = {chain.last}
    for statement in reversed(chain.statements[:-1]):
        uses = kernel.flow.uses_after(statement) or []
        if all(kernel.flow.statement_of(use) in gone for use in uses):
            gone.add(statement)
    return [kernel.source.moved(s.node) for s in chain.statements if s in gone]


def keep_transposed(kernel: NkiKernel) -> Iterator[Rewrite]:
    for statement in kernel.flow.simple():
        chain = next(chains(kernel, statement), None)
        if chain is not None and has_load(kernel, chain):
            rewrite = _loaded_transposed(kernel, chain)
            if rewrite is not None:
                yield rewrite
    for product, where in _products(kernel):
        rewrite = _computed_transposed(kernel, product, where)
        if rewrite is not None:
            yield rewrite


def _products(kernel: NkiKernel) -> Iterator[tuple[NkiCall, Statement]]:
    """Yield the calls of ``nl.matmul`` that transpose their first operand, with the statements they stand
    in."""
    for call in kernel.source.walk(kernel.subject.function.body, cst.Call):
        product = kernel.instruction(call) if kernel.path(call.func) == f"{NL}.matmul" else None
        where = kernel.flow.statement_of(call)
        if product is not None and where is not None and product.get("transpose_x") is None:
            yield product, where


def _loaded_transposed(kernel: NkiKernel, chain: Chain) -> Rewrite | None:
    """``t = load(...)`` for ``matmul(t, ...)`` alone: load and transpose before the loop."""
    last, source = chain.last, kernel.source
    uses, name = kernel.flow.uses_after(last) or [], last.target_name or ""
    products = {id(p["x"]): p for p, _ in _products(kernel)}
    reading = [products.get(id(use)) for use in uses]
    assert last.value is not None
    resident = _turned(kernel, f"{name}_transposed", tile(kernel, last.value), chain.over)
    words = _words(kernel)
    if not uses or None in reading or resident is None or words is None:
        return None
    moved = [source.with_comment(s.node) for s in chain.statements]
    filled = resident.filled(kernel, [*moved, f"{resident.place(kernel)} = {words[0]}({words[1]}({name}))"])
    edits = [source.before(chain.outer, filled), *removed(kernel, chain)]
    edits += [edit for p in reading if p is not None for edit in _reads(kernel, p, resident)]
    return Rewrite(
        tuple(edits),
        f"Load and transpose {name} once before the loop over {source.code(chain.outer.target)}.",
    )


def _computed_transposed(kernel: NkiKernel, product: NkiCall, where: Statement) -> Rewrite | None:
    """``matmul(t[:, k], ...)`` in a loop that does not change ``t``: transpose all parts of ``t`` before that loop."""
    flow, source, x = kernel.flow, kernel.source, product["x"]
    name = x.value if isinstance(x, cst.Subscript) else x
    if not isinstance(name, cst.Name) or name.value in kernel.arguments or not where.loops:
        return None
    used = flow.variables(x)
    outer: cst.For | None = None
    over: tuple[cst.For, ...] = ()
    for position in range(len(where.loops) - 1, -1, -1):
        inside = tuple(loop for loop in where.loops[position + 1 :] if loop_variable(loop) in used)
        steady = used - {loop_variable(loop) for loop in inside}
        varying = flow.varying(where.loops[position])
        if steady & varying or any(flow.variables(loop.iter) & varying for loop in inside):
            if (
                loop_variable(where.loops[position]) in used
                and not (steady - {loop_variable(where.loops[position])}) & varying
            ):
                continue  # a loop over the parts
            break
        outer, over = where.loops[position], inside
    shape = tile(kernel, x)
    if shape is not None:
        shape = TileShape(shape.rows, shape.columns, shape.dtype or f"{name.value}.dtype")
    resident, words = _turned(kernel, f"{name.value}_transposed", shape, over), _words(kernel)
    if outer is None or resident is None or words is None:
        return None
    filled = resident.filled(kernel, [f"{resident.place(kernel)} = {words[0]}({words[1]}({source.code(x)}))"])
    edits = (source.before(outer, filled), *_reads(kernel, product, resident))
    return Rewrite(edits, f"Transpose {name.value} once before the loop over {source.code(outer.target)}.")


def _turned(
    kernel: NkiKernel, name: str, of: TileShape | None, over: tuple[cst.For, ...]
) -> ResidentTiles | None:
    return keep(kernel, name, None if of is None else TileShape(of.columns, of.rows, of.dtype), over)


def _words(kernel: NkiKernel) -> tuple[str, str] | None:
    copy, transpose = (kernel.spelled(f"{NL}.{w}") for w in ("copy", "transpose"))
    return (copy, transpose) if copy and transpose else None


def _reads(kernel: NkiKernel, product: NkiCall, resident: ResidentTiles) -> list[ByteEdit]:
    source, after = kernel.source, kernel.source.end(product["y"])
    return [
        source.replace(product["x"], resident.place(kernel)),
        ByteEdit(after, after, ", transpose_x=True"),
    ]
