"""Finds the pointer arguments of a Triton kernel, and those that an address is computed from."""

from __future__ import annotations

import libcst as cst

from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_profiling.triton.functions.table import functions_of


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
