"""Find code that hides what it does: text turned into code, names put together at run time, long packed literals.

This reads the text as it is written, not its plain spelling.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator

from accelopt_profiling.gate.reading.facts import Facts, StaticFinding, at
from accelopt_profiling.gate.reading.vocabulary import rule_for

_LONG_LITERAL = 200  # characters without a space, and dense: longer than any honest constant of a kernel file


def obfuscation(facts: Facts, node: ast.AST) -> Iterator[StaticFinding]:
    match node:
        case ast.Call():
            yield from _call(facts, node, facts.called(node))
        case ast.Constant(str() | bytes() as literal) if _is_packed(literal):
            length = len(literal)
            message = f"It holds a packed literal of {length} characters."
            yield at(node, "obfuscated", subject=f"literal of {length}", message=message, certain=True)
        case ast.Attribute() | ast.Name() if facts.dotted(node) == "sys.modules":
            if not _asks_for_one(facts, node):
                message = "It looks at the loaded modules (sys.modules)."
                yield at(node, "reads-the-gate", subject="loaded modules", message=message, certain=True)
        case ast.Subscript(ast.Attribute(owner, "__dict__")) if facts.dotted(owner):
            yield at(
                node,
                "obfuscated",
                subject="__dict__",
                message="It looks a name up in a module's __dict__.",
                certain=True,
            )


def _call(facts: Facts, node: ast.Call, called: str) -> Iterator[StaticFinding]:
    match called, node.args:
        case "exec" | "eval" | "compile", _:
            yield at(
                node,
                "obfuscated",
                subject=f"text by {called}",
                message=f"It runs text as code ({called}).",
                certain=True,
            )
        case "__import__" | "importlib.import_module", names:
            if names and (isinstance(names[0], ast.Constant) or _always_named(facts, names[0])):
                message, certain = "It imports a module by name.", called == "__import__"
                yield at(node, "obfuscated", subject="import by name", message=message, certain=certain)
            else:
                message = "It imports a module by name put together at run time."
                yield at(
                    node, "obfuscated", subject="import by assembled name", message=message, certain=True
                )
        case "importlib.util.spec_from_file_location" | "importlib.machinery.SourceFileLoader", _:
            yield at(
                node,
                "reads-the-gate",
                subject="file as module",
                message="It loads another file as a module.",
                certain=True,
            )
        case "getattr", [owner, name, *_] if facts.dotted(owner) and not isinstance(name, ast.Constant):
            message = "It looks up an attribute of a module by a name put together at run time."
            certain = _is_assembled(name) and not _is_dtype_of_a_language(facts.dotted(owner), name)
            yield at(node, "obfuscated", subject="assembled attribute", message=message, certain=certain)
        case "globals" | "vars" | "locals", _ if isinstance(facts.parents.get(node), ast.Subscript):
            yield at(node, "obfuscated", f"{called}()", f"It looks a name up in {called}().")


def _always_named(facts: Facts, node: ast.expr) -> bool:
    """Check whether ``node`` is a parameter for which every call in the file gives the plain name of a harmless
    module: ``version("torch")``."""
    function = facts.function_of(node)
    ordered = [a.arg for a in (*function.args.posonlyargs, *function.args.args)] if function else []
    if function is None or not isinstance(node, ast.Name) or node.id not in ordered:
        return False
    uses = [n for n in facts.nodes if isinstance(n, ast.Name) and n.id == function.name]
    for use in uses:
        match facts.parents[use]:
            case ast.Call(callee, args) if callee is use and len(args) > (place := ordered.index(node.id)):
                name = getattr(args[place], "value", None)
                if not isinstance(name, str) or rule_for(name) is not None:
                    return False
            case _:
                return False
    return bool(uses)


def _asks_for_one(facts: Facts, node: ast.AST) -> bool:
    """``"torch" in sys.modules``, ``sys.modules.get("torch")``, and the module's own ``sys.modules[__name__]``."""
    parent = facts.parents.get(node)
    match parent, facts.parents.get(parent or node):
        case ast.Compare(ast.Constant()), _:
            return True
        case ast.Attribute(attr="get"), ast.Call(args=[ast.Constant(), *_]):
            return True
        case ast.Subscript(slice=ast.Name("__name__"), ctx=ast.Load()), _:
            return True
    return False


def _is_assembled(node: ast.expr) -> bool:
    """Check whether a name is assembled in place: ``"al" + "lclose"``, ``"".join(...)``, ``x[::-1]``."""
    if isinstance(node, (ast.BinOp, ast.JoinedStr, ast.Subscript)):
        return any(isinstance(getattr(n, "value", None), str) for n in ast.walk(node))
    return isinstance(node, ast.Call)


def _is_dtype_of_a_language(owner: str | None, name: ast.expr) -> bool:
    """``getattr(tl, str(x.dtype).split(".")[-1])``: the language's name of a tensor's dtype."""
    has_dtype = any(getattr(n, "attr", "") == "dtype" for n in ast.walk(name))
    return owner is not None and owner.endswith("language") and has_dtype


def _is_packed(value: str | bytes) -> bool:
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if len(text) < _LONG_LITERAL or re.search(r"\s", text.strip()):
        return False
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values()) > 3.5
