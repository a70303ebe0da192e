"""Tell the cache what is read once and what is read again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.pointers import addressed, sources


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.calls("dot"):
        return  # the tiles of a product are read again, by other programs
    loads = [(load, _tensor(kernel, load)) for load in kernel.calls("load")]
    edits: list[ByteEdit] = []
    for position, (load, tensor) in enumerate(loads):
        if (
            tensor is None
            or not _has_lanes(kernel, load)
            or any(a.keyword is not None and a.keyword.value == "eviction_policy" for a in load.args)
        ):
            continue
        again = any(other == tensor for _, other in loads[position + 1 :])
        policy = "evict_last" if again or not _is_own(kernel, load) else "evict_first"
        edits += kernel.keyword_edits(load, "eviction_policy", f'"{policy}"')
    if edits:
        yield Rewrite(
            tuple(edits), "Evict what is read for the last time first, and keep what is read again."
        )


def _tensor(kernel: TritonKernel, load: cst.Call) -> str | None:
    """Return the pointer argument that the address is made from, if it is one."""
    tensors = addressed(kernel, load)
    return tensors.pop() if len(tensors) == 1 else None


def _has_lanes(kernel: TritonKernel, load: cst.Call) -> bool:
    """Return whether a load is of more than one element: of a single one no cache takes notice."""
    names = sources(kernel, load.args[0].value)
    nodes = [load.args[0].value, *(s.node for s in kernel.flow.simple() if s.writes & names)]
    calls = (c for node in nodes for c in kernel.source.walk(node, cst.Call))
    return any(kernel.is_call(c, "arange", "make_block_ptr", "make_tensor_descriptor") for c in calls)


def _is_own(kernel: TritonKernel, load: cst.Call) -> bool:
    """Return whether the address depends on all grid axes, so that no other program reads it."""
    axes = {kernel.source.code(c) for c in kernel.calls("program_id")}
    names = sources(kernel, load.args[0].value)
    nodes = [load.args[0].value, *(s.node for s in kernel.flow.simple() if s.writes & names)]
    inside = {
        c for node in nodes for c in kernel.source.walk(node, cst.Call) if kernel.is_call(c, "program_id")
    }
    return axes == {kernel.source.code(c) for c in inside}
