"""Find ways around the kernel: errors of a launch that are swallowed, or answered with the framework's own result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.facts import Facts, StaticFinding, at, below
from accelopt_profiling.gate.reading.vocabulary import WORDS


def fallback(facts: Facts, node: ast.AST) -> Iterator[StaticFinding]:
    """Yield ``try`` around a launch whose handler hides the error or computes the result in another way, and branches
    of a launching function that return a result of the framework."""
    match node:
        case ast.Try(body, handlers) if _reaches_launch(facts, body):
            for handler in handlers:
                yield from _handler(facts, handler)
        case ast.With(items, body):
            hides = any(facts.called(i.context_expr) == "contextlib.suppress" for i in items)
            if hides and _reaches_launch(facts, body):
                yield at(
                    node,
                    "fallback",
                    subject="suppress",
                    message="It hides errors of a kernel's launch.",
                    certain=True,
                )
        case ast.If() if any(f.name in facts.launchers for f in facts.functions(node)):
            for statement in (s for b in (node.body, node.orelse) if not facts.launches(*b) for s in b):
                if isinstance(statement, ast.Return) and (by := _otherwise(facts, statement)):
                    message = f"On one branch it returns a result of the framework ({by})."
                    yield at(statement, "fallback", f"branch {by}", message)


def _handler(facts: Facts, node: ast.ExceptHandler) -> Iterator[StaticFinding]:
    if by := _otherwise(facts, *node.body):
        message = f"Where the kernel fails it computes the result otherwise ({by})."
        yield at(node, "fallback", subject=f"handler {by}", message=message, certain=True)
    elif all(isinstance(s, (ast.Pass, ast.Continue)) or _is_constant(s) for s in node.body):
        yield at(
            node,
            "fallback",
            subject="swallows",
            message="It swallows errors of a kernel's launch.",
            certain=True,
        )
    elif not any(isinstance(n, ast.Raise) for n in below(*node.body)):
        yield at(node, "fallback", "goes on", "It goes on where a kernel's launch fails.")


def _reaches_launch(facts: Facts, body: list[ast.stmt]) -> bool:
    """Check whether statements launch a kernel, themselves or through a function of the file."""
    called = (n.func for n in below(*body) if isinstance(n, ast.Call))
    return facts.launches(*body) or any(getattr(name, "id", None) in facts.launchers for name in called)


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _otherwise(facts: Facts, *nodes: ast.AST) -> str | None:
    """Return what ``nodes`` compute with a framework, themselves or through a function that launches nothing."""
    if by := _computes(facts, *nodes):
        return by
    for name in (getattr(n.func, "id", "") for n in below(*nodes) if isinstance(n, ast.Call)):
        function = facts.functions_at_top.get(name)
        if (
            function
            and name not in facts.kernels
            and not facts.launches(function)
            and _computes(facts, function)
        ):
            return f"through {name}"
    return None


def _computes(facts: Facts, *nodes: ast.AST) -> str | None:
    """Return the first framework computation below ``nodes``, in words. None where there is none."""
    for node in below(*nodes):
        match node:
            case ast.BinOp(op=ast.MatMult()):
                return "`@`"
            case ast.Call():
                root, _, _ = (called := facts.called(node)).partition(".")
                last = called.rpartition(".")[2]
                if (
                    root in WORDS["frameworks"]
                    and last not in WORDS["bookkeeping"]
                    and not last[:1].isupper()
                ):
                    return called
                method = getattr(node.func, "attr", "")
                if not called and method in WORDS["computing_methods"]:
                    return f"`.{method}()`"
    return None
