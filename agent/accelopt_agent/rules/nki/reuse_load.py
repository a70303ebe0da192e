"""Use a tile that is already on chip instead of loading the same bytes again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.nki.kernel import NkiCall, NkiKernel
from accelopt_agent.rules.analysis.parsed_source import canonical
from accelopt_agent.rules.analysis.rule_context import Rewrite


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    in_place = kernel.dialect.mutates
    loads = kernel.of("nisa.dma_copy" if in_place else "nl.load")
    for position, second in enumerate(loads):
        for first in loads[:position]:
            rewrite = (_read_instead if in_place else _reused)(kernel, first, second)
            if rewrite is not None:
                yield rewrite
                break


def _reused(kernel: NkiKernel, first: NkiCall, second: NkiCall) -> Rewrite | None:
    """Replace the reads of ``second`` by reads of ``first``, if both load the same and nothing wrote it
    meanwhile.
    """
    flow, source = kernel.flow, kernel.source
    one, two = first.statement, second.statement
    if one is None or two is None or one.block is not two.block or not source.same(first.call, second.call):
        return None
    survivor, dropped = one.target_name, two.target_name
    if survivor is None or dropped is None or survivor == dropped or one.target is None:
        return None
    dropped_reads = flow.uses_after(two)
    if flow.uses_after(one) is None or dropped_reads is None:
        return None
    if not flow.unchanged(one, two, flow.variables(first.call)):
        return None
    edits = [source.without(two.node)]
    if isinstance(two.target, cst.Name):
        if not isinstance(one.target, cst.Name):
            return None
        edits += [source.replace(name, survivor) for name in dropped_reads]
    else:
        allocation, kept_allocation = flow.allocation(dropped), flow.allocation(survivor)
        if allocation is None or kept_allocation is None or isinstance(one.target, cst.Name):
            return None
        if not _same_index(kernel, one.target, two.target):
            return None
        if not _same_layout(kernel, allocation.value, kept_allocation.value):
            return None
        edits += [source.replace(name, survivor) for name in dropped_reads]
        edits.append(source.without(allocation.node))
    return Rewrite(tuple(edits), f"Use {survivor} instead of loading the same tile again as {dropped}.")


def _read_instead(kernel: NkiKernel, first: NkiCall, second: NkiCall) -> Rewrite | None:
    """Today's dialect: the same for two tiles that are made alike and filled once each."""
    flow, source, one, two = kernel.flow, kernel.source, first.statement, second.statement
    survivor, dropped = first.destination, second.destination
    if one is None or two is None or one.block is not two.block:
        return None
    if (
        not isinstance(survivor, cst.Name)
        or not isinstance(dropped, cst.Name)
        or survivor.value == dropped.value
    ):
        return None
    if first.args.keys() != second.args.keys() or not all(
        source.same(first[k], second[k]) for k in first.args
    ):
        return None
    allocation, other = flow.allocation(survivor.value), flow.allocation(dropped.value)
    if allocation is None or other is None or not _same_layout(kernel, allocation.value, other.value):
        return None
    reads = flow.uses_after(two)
    if reads is None or flow.uses_after(one) is None or flow.sharing([dropped.value]) != {dropped.value}:
        return None
    if not flow.unchanged(one, two, flow.variables(first["src"])):
        return None
    edits = [*kernel.without(second), *(source.replace(name, survivor.value) for name in reads)]
    return Rewrite(
        tuple(edits), f"Use {survivor.value} instead of loading the same tile again as {dropped.value}."
    )


def _same_index(kernel: NkiKernel, one: cst.BaseExpression, other: cst.BaseExpression | None) -> bool:
    if not (isinstance(one, cst.Subscript) and isinstance(other, cst.Subscript)):
        return False
    index, other_index = (", ".join(kernel.source.code(e) for e in s.slice) for s in (one, other))
    return canonical(index) == canonical(other_index)


def _same_layout(kernel: NkiKernel, one: cst.BaseExpression | None, other: cst.BaseExpression | None) -> bool:
    """Return whether two allocations have the same function, shape, type and buffer.

    Their names may differ.
    """
    if one is None or other is None:
        return False
    left, right = kernel.instruction(one), kernel.instruction(other)
    if left is None or right is None or left.path != right.path:
        return False
    keys = (set(left.args) | set(right.args)) - {"name"}
    return all(k in left.args and k in right.args and kernel.source.same(left[k], right[k]) for k in keys)
