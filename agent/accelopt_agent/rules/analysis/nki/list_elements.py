"""Follows tiles through Python lists, where today's dialect keeps one for each iteration of a loop."""

from __future__ import annotations

import libcst as cst

from accelopt_agent.rules.analysis.nki.kernel import NkiKernel


def element(kernel: NkiKernel, node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what ``node`` stands for: for ``tiles[i]`` the value that alone is appended to ``tiles``, else itself."""
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Name):
        return node
    name = node.value.value
    bound = kernel.flow.binding(name)
    if len(bound) != 1 or not isinstance(bound[0].value, cst.List) or bound[0].value.elements:
        return node
    appended = [
        call.args[0].value
        for use in kernel.flow.occurrences(name)
        if isinstance(method := kernel.source.parent(use), cst.Attribute)
        and method.attr.value == "append"
        and isinstance(call := kernel.source.parent(method), cst.Call)
        and len(call.args) == 1
    ]
    return appended[0] if len(appended) == 1 else node
