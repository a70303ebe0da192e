"""Finds a kernel's pointer arguments, and those that cannot overlap.

What cannot is seen from how its launches make their tensors.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel
from accelopt_profiling.triton.functions.table import functions_of

_FRESH = frozenset(
    {"empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like"}
    | {"new_empty", "new_zeros", "new_ones", "new_full"}
)


def apart(kernel: TritonKernel) -> Callable[[str, str], bool]:
    """Return whether two pointer arguments are known to be in different memory: at each launch one of them
    was allocated by the function that launches, and the other is not made from it."""

    def never_overlap(one: str, other: str) -> bool:
        if one == other or not kernel.launches:
            return False
        return all(_apart(kernel, launch, one, other) for launch in kernel.launches)

    return never_overlap


def _apart(kernel: TritonKernel, launch: KernelLaunch, one: str, other: str) -> bool:
    arguments = launch.arguments.get(one), launch.arguments.get(other)
    if arguments[0] is None or arguments[1] is None:
        return False
    first, second = _origins(kernel, launch, arguments[0]), _origins(kernel, launch, arguments[1])
    fresh = {n for n in first | second if _is_fresh(kernel, launch, n)}
    return not first & second & fresh and bool(fresh) and (first <= fresh or second <= fresh)


def _origins(kernel: TritonKernel, launch: KernelLaunch, node: cst.CSTNode) -> set[str]:
    """Return the variables that a tensor may share memory with: those it is computed from, unless it is
    allocated."""
    names: set[str] = set()
    todo = [n.value for n in kernel.source.walk(node, cst.Name) if _is_variable(kernel, n)]
    while todo:
        name = todo.pop()
        if name in names:
            continue
        names.add(name)
        for value in _values(kernel, launch, name):
            if not _allocates(kernel, value):
                todo += [n.value for n in kernel.source.walk(value, cst.Name) if _is_variable(kernel, n)]
    return names


def _values(kernel: TritonKernel, launch: KernelLaunch, name: str) -> list[cst.BaseExpression]:
    if launch.function is None:
        return []
    assigns = kernel.source.walk(launch.function.body, cst.Assign)
    return [
        a.value
        for a in assigns
        for t in a.targets
        if any(n.value == name for n in kernel.source.walk(t.target, cst.Name))
    ]


def _is_fresh(kernel: TritonKernel, launch: KernelLaunch, name: str) -> bool:
    values = _values(kernel, launch, name)
    parameters = kernel.source.walk(launch.function.params, cst.Param) if launch.function else ()
    return (
        bool(values)
        and all(_allocates(kernel, v) for v in values)
        and all(p.name.value != name for p in parameters)
    )


def _allocates(kernel: TritonKernel, value: cst.BaseExpression) -> bool:
    if not isinstance(value, cst.Call):
        return False
    function = value.func
    if not isinstance(function, cst.Attribute):
        return (kernel.names.path(function) or "").rpartition(".")[2] in _FRESH
    return function.attr.value in _FRESH


def _is_variable(kernel: TritonKernel, name: cst.Name) -> bool:
    parent = kernel.source.parent(name)
    if isinstance(parent, cst.Attribute) and parent.attr is name:
        return False
    return not (isinstance(parent, cst.Arg) and parent.keyword is name)


def pointers(kernel: TritonKernel) -> set[str]:
    """Return the arguments that are called pointers, or with which the address of a load or store begins."""
    names = {name for name in kernel.parameters if name.lower().endswith(("ptr", "pointer"))}
    for call in kernel.calls(*functions_of("load", "store", "atomic")):
        names |= _first_terms(kernel, call.args[0].value, set()) if call.args else set()
    return names & set(kernel.parameters)


def _first_terms(kernel: TritonKernel, node: cst.BaseExpression, visited: set[str]) -> set[str]:
    while isinstance(node, cst.BinaryOperation):
        node = node.left
    if not isinstance(node, cst.Name) or node.value in visited:
        return set()
    visited.add(node.value)
    values = [s.value for s in kernel.flow.simple() if s.binds(node.value) and s.value is not None]
    return {node.value}.union(*(_first_terms(kernel, value, visited) for value in values))


def addressed(kernel: TritonKernel, call: cst.Call) -> set[str]:
    """Return the pointer arguments that the address of a load or store is made from."""
    return sources(kernel, call.args[0].value) & pointers(kernel) if call.args else set()


def sources(kernel: TritonKernel, node: cst.CSTNode, visited: set[str] | None = None) -> set[str]:
    """Return the names that ``node`` is computed from, through assignments, but for what is loaded."""
    visited = set() if visited is None else visited
    names = kernel.flow.variables(node)
    for name in names - visited:
        visited.add(name)
        for statement in kernel.flow.simple():
            if name in statement.writes and not kernel.is_call(statement.value, "load"):
                names = names | sources(kernel, statement.node, visited)
    return names
