"""What counts the calls of a function: numbers, lists and iterators that outlive a call and move on with each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.names import Names, local_names


def counters_of(names: Names) -> Iterator[tuple[str, str]]:
    """Global names, attributes and list lengths that a function advances each time it is called."""
    for function in ast.walk(names.tree):
        if (
            not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            or function.name in names.kernels
        ):
            continue
        shared = {
            n
            for node in ast.walk(function)
            if isinstance(node, (ast.Global, ast.Nonlocal))
            for n in node.names
        }
        for node in ast.walk(function):
            if (target := _advanced(node)) is not None:
                if isinstance(target, ast.Name) and target.id in shared:
                    yield names.scoped(target, target.id), "how often it was called"
                elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    yield f"{target.value.id}.{target.attr}", "how often it was called"
                elif (
                    isinstance(target, ast.Subscript)
                    and isinstance(target.value, ast.Name)
                    and target.value.id not in local_names(function)
                ):
                    yield f"{names.scoped(target, target.value.id)}[]", "how often it was called"
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "append"
            ):
                base = node.func.value
                if isinstance(base, ast.Name) and base.id not in local_names(function):
                    yield f"len({names.scoped(base, base.id)})", "how often it was called"
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "next"
                and node.args
                and isinstance(node.args[0], ast.Name)
                and node.args[0].id not in local_names(function)
            ):
                yield f"next({names.scoped(node, node.args[0].id)})", "how often it was called"


def _advanced(node: ast.AST) -> ast.expr | None:
    """What ``x += 1`` and ``x = x + 1`` move on."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
        return node.target
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        target, value = node.targets[0], node.value
        if isinstance(value.op, (ast.Add, ast.Sub)) and ast.unparse(target) in (
            ast.unparse(value.left), ast.unparse(value.right)
        ):  # fmt: skip
            return target
    return None


def counted_by(names: Names, test: ast.AST, counters: dict[str, str]) -> str | None:
    """Why ``test`` depends on one of the ``counters``; None where it does not."""
    for node in ast.walk(test):
        key = None
        if isinstance(node, ast.Name):
            key = names.scoped(node, node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            key = f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            key = f"{names.scoped(node, node.value.id)}[]"
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.args
            and isinstance(node.args[0], ast.Name)
        ):
            key = f"{node.func.id}({names.scoped(node, node.args[0].id)})"
        if key in counters:
            return counters[key]
    return None
