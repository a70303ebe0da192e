"""Find code that hides what it does: text turned into code, names put together at run time, long packed literals."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator

from accelopt_profiling.gate.reading.forbidden_names import rule_for
from accelopt_profiling.gate.reading.names import ResolvedNames, StaticFinding

_LONG_LITERAL = 200  # characters without a space, and dense: longer than any honest constant of a kernel file


def obfuscation(names: ResolvedNames) -> Iterator[StaticFinding]:
    for call, called in names.calls():
        if called in ("exec", "eval", "compile"):
            yield StaticFinding(
                "obfuscated", f"text by {called}", call.lineno, f"It runs text as code ({called}).", True
            )
        elif called in ("__import__", "importlib.import_module"):
            plain = bool(call.args) and (
                isinstance(call.args[0], ast.Constant) or _always_named(names, call.args[0])
            )
            message = "It imports a module by name" + ("." if plain else " put together at run time.")
            subject = "import by name" if plain else "import by assembled name"
            yield StaticFinding(
                "obfuscated", subject, call.lineno, message, not plain or called == "__import__"
            )
        elif called in ("importlib.util.spec_from_file_location", "importlib.machinery.SourceFileLoader"):
            yield StaticFinding(
                "reads-the-gate", "file as module", call.lineno, "It loads another file as a module.", True
            )
        elif called == "getattr" and len(call.args) > 1 and not _plain(call.args[1]):
            if names.dotted(call.args[0]) is not None:
                message = "It looks up an attribute of a module by a name put together at run time."
                sure = _assembled(call.args[1]) and not _is_dtype_of_a_language(names, call)
                yield StaticFinding("obfuscated", "assembled attribute", call.lineno, message, sure)
        elif called in ("globals", "vars", "locals") and isinstance(names.parents.get(call), ast.Subscript):
            message = f"It looks a name up in {called}()."
            yield StaticFinding("obfuscated", f"{called}()", call.lineno, message)
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) and _packed(node.value):
            message = f"It holds a packed literal of {len(node.value)} characters."
            yield StaticFinding("obfuscated", f"literal of {len(node.value)}", node.lineno, message, True)
        elif isinstance(node, (ast.Attribute, ast.Name)) and names.dotted(node) == "sys.modules":
            if not _asks_for_one(names, node):
                message = "It looks at the loaded modules (sys.modules)."
                yield StaticFinding("reads-the-gate", "loaded modules", node.lineno, message, True)
        elif (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "__dict__"
            and names.dotted(node.value.value)
        ):
            message = "It looks a name up in a module's __dict__."
            yield StaticFinding("obfuscated", "__dict__", node.lineno, message, True)


def _always_named(names: ResolvedNames, node: ast.expr) -> bool:
    """Return a parameter for which every call in the file gives the plain name of a harmless module:
    ``version("torch")``."""
    function = names.function_of(node)
    if function is None or not isinstance(node, ast.Name):
        return False
    ordered = [a.arg for a in [*function.args.posonlyargs, *function.args.args]]
    if node.id not in ordered or any(_uses_otherwise(names, n, function.name) for n in ast.walk(names.tree)):
        return False
    place = ordered.index(node.id)
    given: list[ast.expr | None] = [
        call.args[place] if place < len(call.args) else None
        for call in ast.walk(names.tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == function.name
    ]
    return bool(given) and all(
        isinstance(v, ast.Constant) and isinstance(v.value, str) and rule_for(v.value) is None for v in given
    )


def _uses_otherwise(names: ResolvedNames, node: ast.AST, function: str) -> bool:
    """Check whether ``node`` names the function without calling it."""
    if not isinstance(node, ast.Name) or node.id != function:
        return False
    parent = names.parents.get(node)
    return not (isinstance(parent, ast.Call) and parent.func is node)


def _asks_for_one(names: ResolvedNames, node: ast.expr) -> bool:
    """``"torch" in sys.modules``, ``sys.modules.get("torch")``, and the module's own ``sys.modules[__name__]``."""
    parent = names.parents.get(node)
    if isinstance(parent, ast.Compare):
        return parent.left is not node and isinstance(parent.left, ast.Constant)
    if isinstance(parent, ast.Attribute) and parent.attr == "get":
        call = names.parents.get(parent)
        return isinstance(call, ast.Call) and bool(call.args) and isinstance(call.args[0], ast.Constant)
    if not isinstance(parent, ast.Subscript) or not isinstance(parent.ctx, ast.Load):
        return False
    return isinstance(parent.slice, ast.Name) and parent.slice.id == "__name__"


def _plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _assembled(node: ast.expr) -> bool:
    """Check whether a name is assembled in place: ``"al" + "lclose"``, ``"".join(...)``, ``x[::-1]``."""
    if isinstance(node, (ast.BinOp, ast.JoinedStr, ast.Subscript)):
        return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(node))
    return isinstance(node, ast.Call)


def _is_dtype_of_a_language(names: ResolvedNames, call: ast.Call) -> bool:
    """``getattr(tl, str(x.dtype).split(".")[-1])``: the language's name of a tensor's dtype."""
    of_language = (names.dotted(call.args[0]) or "").endswith("language")
    return of_language and any(
        isinstance(n, ast.Attribute) and n.attr == "dtype" for n in ast.walk(call.args[1])
    )


def _packed(value: str | bytes) -> bool:
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if len(text) < _LONG_LITERAL or re.search(r"\s", text.strip()):
        return False
    counts = Counter(text)
    entropy = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    return entropy > 3.5
