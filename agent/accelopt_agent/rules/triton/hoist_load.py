"""Load before a loop what the loop does not change."""

from __future__ import annotations

from collections.abc import Iterator

from accelopt_agent.rules.hoisting import departure
from accelopt_agent.rules.launches import open_triton
from accelopt_agent.rules.subject import Rewrite, Subject

#: Functions that index arithmetic may call.
_INDEXING = frozenset({"arange", "program_id", "num_programs", "cdiv"})


def rewrites(subject: Subject) -> Iterator[Rewrite]:
    kernel = open_triton(subject)
    if kernel is None:
        return
    stores = kernel.calls("store", "atomic_add", "atomic_cas", "atomic_xchg", "atomic_max", "atomic_min")
    for statement in kernel.flow.simple():
        if not statement.loops or not kernel.is_call(statement.value, "load"):
            continue
        found = departure(kernel.flow, statement, _INDEXING)
        # Pointers may overlap: a store inside the loop might change what the load reads.
        if found is None or any(found.loops[-1] in kernel.source.parents(store) for store in stores):
            continue
        yield found.rewrite(kernel.flow, f"Load {statement.target_name}")
