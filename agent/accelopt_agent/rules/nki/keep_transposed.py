"""Transpose the stationary tiles of matrix products once, before the loop that transposes them again and again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiCall, NkiKernel, open_beta1
from accelopt_agent.rules.analysis.nki.loop_invariants import Chain, chains
from accelopt_agent.rules.analysis.nki.resident_tiles import ResidentTiles, keep
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape, tile
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_agent.rules.nki.keep_computed import has_load, removed


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_beta1(subject)
    if kernel is None:
        return
    for statement in kernel.flow.simple():
        found = next(chains(kernel, statement), None)
        if found is not None and has_load(kernel, found):
            rewrite = _loaded(kernel, found)
            if rewrite is not None:
                yield rewrite
    for product, where in _products(kernel):
        rewrite = _computed(kernel, product, where)
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


def _loaded(kernel: NkiKernel, found: Chain) -> Rewrite | None:
    """``t = load(...)`` for ``matmul(t, ...)`` alone: load and transpose before the loop."""
    last, source = found.last, kernel.source
    uses, name = kernel.flow.uses_after(last) or [], last.target_name or ""
    products = {id(p["x"]): p for p, _ in _products(kernel)}
    reading = [products.get(id(use)) for use in uses]
    assert last.value is not None
    kept = _turned(kernel, f"{name}_transposed", tile(kernel, last.value), found.over)
    words = _words(kernel)
    if not uses or None in reading or kept is None or words is None:
        return None
    moved = [source.with_comment(s.node) for s in found.statements]
    filled = kept.filled(kernel, [*moved, f"{kept.place(kernel)} = {words[0]}({words[1]}({name}))"])
    edits = [source.before(found.outer, filled), *removed(kernel, found)]
    edits += [edit for p in reading if p is not None for edit in _reads(kernel, p, kept)]
    return Rewrite(
        tuple(edits),
        f"Load and transpose {name} once before the loop over {source.code(found.outer.target)}.",
    )


def _computed(kernel: NkiKernel, product: NkiCall, where: Statement) -> Rewrite | None:
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
    made = tile(kernel, x)
    if made is not None:
        made = TileShape(made.rows, made.columns, made.dtype or f"{name.value}.dtype")
    kept, words = _turned(kernel, f"{name.value}_transposed", made, over), _words(kernel)
    if outer is None or kept is None or words is None:
        return None
    filled = kept.filled(kernel, [f"{kept.place(kernel)} = {words[0]}({words[1]}({source.code(x)}))"])
    edits = (source.before(outer, filled), *_reads(kernel, product, kept))
    return Rewrite(edits, f"Transpose {name.value} once before the loop over {source.code(outer.target)}.")


def _turned(
    kernel: NkiKernel, name: str, of: TileShape | None, over: tuple[cst.For, ...]
) -> ResidentTiles | None:
    return keep(kernel, name, None if of is None else TileShape(of.columns, of.rows, of.dtype), over)


def _words(kernel: NkiKernel) -> tuple[str, str] | None:
    copy, transpose = (kernel.spelled(f"{NL}.{w}") for w in ("copy", "transpose"))
    return (copy, transpose) if copy and transpose else None


def _reads(kernel: NkiKernel, product: NkiCall, kept: ResidentTiles) -> list[ByteEdit]:
    source, after = kernel.source, kernel.source.end(product["y"])
    return [source.replace(product["x"], kept.place(kernel)), ByteEdit(after, after, ", transpose_x=True")]
