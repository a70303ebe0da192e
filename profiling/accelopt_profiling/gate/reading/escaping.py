"""Find work that may end after the call has returned: streams that nothing waits for, captured graphs, later calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.names import ResolvedNames, StaticFinding

_STREAMS = (
    "torch.cuda.Stream",
    "torch.cuda.stream",
    "torch.cuda.ExternalStream",
    "torch.Stream",
    "torch.hip.Stream",
)
_GRAPHS = (
    "torch.cuda.CUDAGraph",
    "torch.cuda.graph",
    "torch.cuda.make_graphed_callables",
    "torch.cuda.graphs",
)
_WAITS = ("wait_stream", "wait_event", "synchronize")


def escaping(names: ResolvedNames) -> Iterator[StaticFinding]:
    is_awaited = any(isinstance(n, ast.Attribute) and n.attr in _WAITS for n in ast.walk(names.tree))
    for call, called in names.calls():
        if called in _STREAMS:
            subject, end = (called, ".") if is_awaited else (f"{called} alone", ", and nothing waits for it.")
            yield StaticFinding(
                "background-work", subject, call.lineno, f"It uses {called}{end}", not is_awaited
            )
        elif called.startswith(_GRAPHS):
            message = f"It captures a graph ({called}): a replay computes from what was captured."
            yield StaticFinding(
                "background-work", f"graph by {called}", call.lineno, message, not _copies_in(names)
            )
    for node in ast.walk(names.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "__del__":
            message = "It does something when an object is dropped."
            yield StaticFinding(
                "background-work", "finaliser", node.lineno, message, not _only_gives_back(node)
            )
        elif isinstance(node, ast.ClassDef):
            bases = [names.dotted(base) or "" for base in node.bases]
            if any(b in ("torch.Tensor", "numpy.ndarray", "torch.nn.Parameter", "torch.nn.parameter.Parameter")
                   for b in bases):  # fmt: skip
                message = "It makes a kind of tensor of its own, which may compute later."
                yield StaticFinding("own-tensor", "class", node.lineno, message, True)
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name in ("__array__", "__torch_function__",
                                                                         "__torch_dispatch__"):  # fmt: skip
                    message = f"It computes when it is looked at (`{inner.name}`)."
                    yield StaticFinding("own-tensor", inner.name, inner.lineno, message, True)


def _only_gives_back(finaliser: ast.AST) -> bool:
    """Check whether a finaliser only drops what the object holds: it neither writes to elements nor calls what may
    work.
    """
    for node in ast.walk(finaliser):
        if isinstance(node, ast.Call):
            function = node.func
            if not (isinstance(function, ast.Attribute) and function.attr in _GIVES_BACK and not node.args):
                return False
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            if isinstance(node, ast.Subscript) or not _is_own(node):
                return False
        elif isinstance(node, ast.AugAssign):
            return False
    return True


#: Methods that end the use of a thing.
_GIVES_BACK = ("close", "clear", "release", "free")


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _copies_in(names: ResolvedNames) -> bool:
    """Check whether fresh inputs are copied into the graph's own buffers before a replay."""
    attributes = {n.attr for n in ast.walk(names.tree) if isinstance(n, ast.Attribute)}
    return {"copy_", "replay"} <= attributes
