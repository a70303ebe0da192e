"""Load before a loop what the loop does not change."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.hoisting import departure
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel, open_triton

#: Functions that index arithmetic may call.
_INDEXING = frozenset({"arange", "program_id", "num_programs", "cdiv"})


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_triton(subject)
    if kernel is None:
        return
    stores = [c for c in kernel.source.walk(subject.function.body, cst.Call) if _may_store(kernel, c)]
    for statement in kernel.flow.simple():
        if not statement.loops or not kernel.is_call(statement.value, "load"):
            continue
        found = departure(kernel.flow, statement, _INDEXING)
        # Pointers may overlap: a store inside the loop might change what the load reads.
        if found is None or any(found.loops[-1] in kernel.source.parents(store) for store in stores):
            continue
        yield found.rewrite(kernel.flow, f"Load {statement.target_name}")


def _may_store(kernel: TritonKernel, call: cst.Call) -> bool:
    """Return whether a call writes to memory, or is one of a function that may do so for all that is known."""
    name = (kernel.names.path(call.func) or "").rpartition(".")[2]
    return name.startswith(("store", "atomic_")) or kernel.names.foreign(call.func, ("triton", "math"))
