"""Find changes of what is not the file's own: attributes of imported modules, shared classes, namespaces."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.facts import Facts, StaticFinding, at
from accelopt_profiling.gate.reading.vocabulary import WORDS

_SETTERS = ("setattr", "delattr", "object.__setattr__", "type.__setattr__")


def patching(facts: Facts, node: ast.AST) -> Iterator[StaticFinding]:
    match node:
        case ast.Call():
            yield from _call(facts, node)
        case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            yield from _target(facts, node)


def _patch(node: ast.expr, subject: str, message: str) -> StaticFinding:
    return at(node, "patches", subject=subject, message=message, certain=True)


def _target(facts: Facts, target: ast.expr) -> Iterator[StaticFinding]:
    match target:
        case ast.Attribute(value, name) if owner := facts.dotted(value):
            whole = f"{owner}.{name}"
            if not whole.startswith(WORDS["settings"]):
                yield _patch(target, f"changes {whole}", f"It changes {whole}, which is not its own.")
            elif name in WORDS["precision_settings"]:
                yield at(target, "low-precision", whole, f"It sets {whole}.")
        case ast.Attribute(ast.Call() as value) if facts.called(value) == "type":
            yield _patch(target, "type()", "It changes a class that it looked up.")
        case ast.Attribute(attr="__class__" | "__dict__" | "__code__" | "__defaults__" as name):
            yield _patch(target, f".{name}", f"It replaces `.{name}` of an object.")
        case ast.Subscript(ast.Attribute(attr="__dict__")):
            yield _patch(target, "__dict__[]", "It writes into an object's `__dict__`.")
        case ast.Subscript(ast.Call() as value) if facts.called(value) in ("vars", "globals", "locals"):
            yield _patch(target, "namespace", "It writes into a namespace.")
        case ast.Subscript(value) if facts.dotted(value) in ("sys.modules", "sys.path_importer_cache"):
            yield _patch(target, "sys.modules[]", "It replaces an imported module.")


def _call(facts: Facts, node: ast.Call) -> Iterator[StaticFinding]:
    called = facts.called(node)
    if called in _SETTERS and node.args:
        owner = facts.dotted(node.args[0])
        if owner and not owner.startswith(WORDS["settings"]):
            yield _patch(node, f"{owner}.", f"It changes an attribute of {owner}.")
    elif called.startswith("torch.library.") and _names_the_framework(node):
        message = f"It registers an implementation of the framework's own operators ({called})."
        yield _patch(node, f"registers by {called}", message)
    elif called.startswith(("unittest.mock", "mock.")):
        yield _patch(node, called, f"It uses {called}.")
    else:
        match node.func:
            case ast.Attribute(ast.Attribute(attr="__dict__"), "update" | "setdefault" | "pop" | "clear"):
                yield _patch(node, "__dict__", "It changes an object's `__dict__`.")
            case ast.Attribute(value, "update" | "setdefault" | "pop" | "clear"):
                if facts.dotted(value) == "sys.modules":
                    yield _patch(node, "sys.modules", "It changes the imported modules.")


def _names_the_framework(node: ast.Call) -> bool:
    """Check whether an operator library that is named is torch's: "aten", or "prims::add"."""
    values = [getattr(a, "value", None) for a in [*node.args, *(k.value for k in node.keywords)]]
    return any(isinstance(v, str) and v.split("::")[0] in ("aten", "prims", "quantized") for v in values)
