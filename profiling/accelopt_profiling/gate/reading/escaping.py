"""Find work that may end after the call has returned: streams that nothing waits for, captured graphs, later calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.facts import Facts, StaticFinding, at
from accelopt_profiling.gate.reading.vocabulary import WORDS

_WAITS = {"wait_stream", "wait_event", "synchronize"}
#: What copies fresh inputs into a graph's own buffers before a replay.
_COPIES_IN = {"copy_", "replay"}
_TENSORS = ("torch.Tensor", "numpy.ndarray", "torch.nn.Parameter", "torch.nn.parameter.Parameter")
_WHEN_LOOKED_AT = ("__array__", "__torch_function__", "__torch_dispatch__")


def escaping(facts: Facts, node: ast.AST) -> Iterator[StaticFinding]:
    code, called = "background-work", facts.called(node)
    match node:
        case ast.Call() if called in WORDS["streams"] and facts.attributes & _WAITS:
            yield at(node, code, called, f"It uses {called}.")
        case ast.Call() if called in WORDS["streams"]:
            yield at(
                node,
                code,
                subject=f"{called} alone",
                message=f"It uses {called}, and nothing waits for it.",
                certain=True,
            )
        case ast.Call() if called.startswith(WORDS["graphs"]):
            message = f"It captures a graph ({called}): a replay computes from what was captured."
            yield at(
                node,
                code,
                subject=f"graph by {called}",
                message=message,
                certain=not facts.attributes >= _COPIES_IN,
            )
        case ast.FunctionDef("__del__") | ast.AsyncFunctionDef("__del__"):
            certain = not all(map(_gives_back, ast.walk(node)))
            yield at(
                node,
                code,
                subject="finaliser",
                message="It does something when an object is dropped.",
                certain=certain,
            )
        case ast.ClassDef(bases=bases, body=body):
            if any(facts.dotted(base) in _TENSORS for base in bases):
                message = "It makes a kind of tensor of its own, which may compute later."
                yield at(node, "own-tensor", subject="class", message=message, certain=True)
            for inner in body:
                if isinstance(inner, ast.FunctionDef) and inner.name in _WHEN_LOOKED_AT:
                    message = f"It computes when it is looked at (`{inner.name}`)."
                    yield at(inner, "own-tensor", subject=inner.name, message=message, certain=True)


def _gives_back(node: ast.AST) -> bool:
    """Check whether a part of a finaliser only drops what the object holds: it neither writes to elements nor calls
    what may work.
    """
    match node:
        case ast.Call(ast.Attribute(attr="close" | "clear" | "release" | "free"), []):
            return True
        case ast.Attribute(ast.Name("self"), ctx=ast.Store()):
            return True
    is_stored = isinstance(getattr(node, "ctx", None), ast.Store)
    is_part = isinstance(node, (ast.Subscript, ast.Attribute))
    return not isinstance(node, (ast.Call, ast.AugAssign)) and not (is_part and is_stored)
