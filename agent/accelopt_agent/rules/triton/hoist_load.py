"""Load before a loop what the loop does not change."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.hoisting import departure
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.storage import addressed, apart
from accelopt_profiling.triton.functions.table import functions_of

#: Functions that index arithmetic may call.
_INDEXING = functions_of("place", "grid", "range") | {"cdiv"}


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    stores = [c for c in kernel.source.walk(kernel.subject.function.body, cst.Call) if _may_store(kernel, c)]
    for statement in kernel.flow.simple():
        load = statement.value
        if not statement.loops or not isinstance(load, cst.Call) or not kernel.is_call(load, "load"):
            continue
        move = departure(kernel.flow, statement, _INDEXING)
        if move is None:
            continue
        inside = [store for store in stores if move.loops[-1] in kernel.source.parents(store)]
        if any(_may_change(kernel, store, load) for store in inside):
            continue
        yield move.rewrite(kernel.flow, f"Load {statement.target_name}")


def _may_change(kernel: TritonKernel, store: cst.Call, load: cst.Call) -> bool:
    """Return whether a store may write what the load reads: not where the launches give them different memory."""
    if kernel.names.foreign(store.func, ("triton", "math")):
        return True
    written, read, never_overlap = addressed(kernel, store), addressed(kernel, load), apart(kernel)
    return not written or not read or not all(never_overlap(w, r) for w in written for r in read)


def _may_store(kernel: TritonKernel, call: cst.Call) -> bool:
    """Return whether a call writes to memory, or is one of a function that may do so for all that is known."""
    name = (kernel.names.path(call.func) or "").rpartition(".")[2]
    return name in functions_of("store", "atomic") or kernel.names.foreign(call.func, ("triton", "math"))
