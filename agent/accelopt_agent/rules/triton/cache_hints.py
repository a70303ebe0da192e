"""Tell the cache what is read once and what is read again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.edit import Edit
from accelopt_agent.rules.launches import TritonKernel, open_triton
from accelopt_agent.rules.subject import Rewrite, Subject


def rewrites(subject: Subject) -> Iterator[Rewrite]:
    kernel = open_triton(subject)
    if kernel is None:
        return
    loads = [(load, _tensor(kernel, load)) for load in kernel.calls("load")]
    edits = []
    for position, (load, tensor) in enumerate(loads):
        if tensor is None or any(
            a.keyword is not None and a.keyword.value == "eviction_policy" for a in load.args
        ):
            continue
        again = any(other == tensor for _, other in loads[position + 1 :])
        policy = "evict_last" if again or not _depends_on_program(kernel, load) else "evict_first"
        at = kernel.source.end(load.args[-1])
        edits.append(Edit(at, at, f', eviction_policy="{policy}"'))
    if edits:
        yield Rewrite(
            tuple(edits), "Evict what is read for the last time first, and keep what is read again."
        )


def _tensor(kernel: TritonKernel, load: cst.Call) -> str | None:
    """The pointer argument that the address is made from, if it is one."""
    found = _sources(kernel, load.args[0].value, set()) & set(kernel.parameters)
    pointers = {name for name in found if _is_pointer(kernel, name)}
    return pointers.pop() if len(pointers) == 1 else None


def _is_pointer(kernel: TritonKernel, name: str) -> bool:
    return name.lower().endswith(("ptr", "pointer")) or name in _addressed(kernel)


def _addressed(kernel: TritonKernel) -> set[str]:
    """Arguments that are the first term of an address."""
    found = set()
    for call in kernel.calls("load", "store"):
        node = call.args[0].value
        while isinstance(node, cst.BinaryOperation):
            node = node.left
        if isinstance(node, cst.Name):
            found.add(node.value)
    return found


def _sources(kernel: TritonKernel, node: cst.CSTNode, seen: set[str]) -> set[str]:
    """The names that ``node`` is computed from, through assignments."""
    found = kernel.flow.variables(node)
    for name in found - seen:
        seen.add(name)
        for statement in kernel.flow.simple():
            if name in statement.writes and not kernel.is_call(statement.value, "load"):
                found = found | _sources(kernel, statement.node, seen)
    return found


def _depends_on_program(kernel: TritonKernel, load: cst.Call) -> bool:
    for name in _sources(kernel, load.args[0].value, set()):
        for statement in kernel.flow.simple():
            if name in statement.writes:
                for call in kernel.source.walk(statement.node, cst.Call):
                    if kernel.is_call(call, "program_id"):
                        return True
    return any(kernel.is_call(c, "program_id") for c in kernel.source.walk(load, cst.Call))
