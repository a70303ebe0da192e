"""Guess which function of a kernel file takes the problem's inputs."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType
from typing import Any

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.problems.problem import ProblemError


def guess_entry(module: ModuleType, count: int, file: str) -> Any:
    """The one public function that launches a kernel, or the one NKI kernel, if it takes ``count`` arguments.

    Raises:
        ProblemError: none or several fit; the message lists them and says how to choose.
    """
    source = inspect.getsource(module)
    kernels = {k.name: k for k in find_kernels(source).kernels if not k.device_function and "." not in k.name}
    names = [name for name in _launchers(source, set(kernels)) if callable(getattr(module, name, None))]
    if not names:
        names = [k.name for k in kernels.values() if k.dialect == "nki"]
    fitting = [n for n in names if _accepts(getattr(module, n), count)]
    if len(fitting) == 1:
        return getattr(module, fitting[0])
    if not fitting:
        tried = f" ({', '.join(names)} do not)" if names else ""
        message = f"No function that launches a kernel takes {count} inputs{tried}; name one with `entry = \"...\"`."
    else:
        message = f"Several functions could take the inputs ({', '.join(fitting)}); name one with `entry = \"...\"`."
    raise ProblemError("problem-invalid", message, file)


def _launchers(source: str, kernels: set[str]) -> list[str]:
    """Public top-level functions whose body launches a kernel, outermost first: one that another calls is left out."""
    tree = ast.parse(source)
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    launching = {name: _called(node) & kernels for name, node in functions.items() if name not in kernels}
    direct = [name for name, called in launching.items() if called]
    called_by_others = {c for name, node in functions.items() if name in direct for c in _called(node)} & set(direct)
    return [n for n in direct if n not in called_by_others and not n.startswith(("_", "test_", "bench"))]


def _called(node: ast.AST) -> set[str]:
    found: set[str] = set()
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            target = call.func.value if isinstance(call.func, ast.Subscript) else call.func
            if isinstance(target, ast.Name):
                found.add(target.id)
    return found


def _accepts(function: Any, count: int) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    positional = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
    return len(required) <= count and (variadic or count <= len(positional))
