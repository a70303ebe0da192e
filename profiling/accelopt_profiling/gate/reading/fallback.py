"""Find ways around the kernel: errors of a launch that are swallowed, or answered with the framework's own result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.names import Function, ResolvedNames, StaticFinding

_FRAMEWORKS = ("torch", "numpy", "scipy", "jax", "tensorflow", "cupy")
#: Functions of a framework that make or lay out memory, or ask about it, rather than compute.
_BOOKKEEPING = frozenset(
    [
        "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like",
        "arange", "tensor", "as_tensor", "from_numpy", "asarray", "ascontiguousarray", "array", "dtype", "finfo",
        "iinfo", "is_tensor", "broadcast_shapes", "broadcast_tensors", "device", "Size", "promote_types",
        "result_type", "is_grad_enabled", "no_grad", "ndarray", "prod", "ceil", "log2", "float32", "float16",
        "bfloat16", "int32", "int64", "synchronize", "is_available", "current_device", "get_device_properties",
        "get_device_capability", "current_stream", "inference_mode", "reshape", "transpose", "broadcast_to",
    ]
)  # fmt: skip


def computes(names: ResolvedNames, node: ast.AST) -> str | None:
    """Return the first framework computation below ``node``, in words; None where there is none."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.MatMult):
            return "`@`"
        if isinstance(inner, ast.Call):
            called = names.dotted(inner.func) or ""
            parts = called.split(".")
            if parts[0] in _FRAMEWORKS and parts[-1] not in _BOOKKEEPING and not parts[-1][0].isupper():
                return called
            if isinstance(inner.func, ast.Attribute) and not called and inner.func.attr in _METHODS:
                return f"`.{inner.func.attr}()`"
    return None


_METHODS = frozenset(
    [
        "matmul", "mm", "bmm", "softmax", "log_softmax", "sum", "mean", "exp", "sqrt", "rsqrt", "relu", "sigmoid",
        "tanh", "dot", "var", "std", "norm", "cumsum", "gelu", "silu",
    ]
)  # fmt: skip


def fallbacks(names: ResolvedNames) -> Iterator[StaticFinding]:
    """Yield ``try`` around a launch whose handler hides the error or computes the result in another way, and branches
    of a launching function that return a result of the framework."""
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Try) and _reaches_launch(names, node.body):
            yield from _handlers(names, node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and names.launches(node):
            if node.name not in names.kernels:
                yield from _branches(names, node)
        elif isinstance(node, ast.With):
            for item in node.items:
                call = item.context_expr
                hides = isinstance(call, ast.Call) and names.dotted(call.func) == "contextlib.suppress"
                if hides and _reaches_launch(names, node.body):
                    message = "It hides errors of a kernel's launch."
                    yield StaticFinding("fallback", "suppress", node.lineno, message, True)


def _reaches_launch(names: ResolvedNames, body: list[ast.stmt]) -> bool:
    """Check whether statements launch a kernel, themselves or through a function of the file."""
    launchers = {
        n.name for n in ast.walk(names.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
        and n.name not in names.kernels and names.launches(n)
    }  # fmt: skip
    for statement in body:
        if names.launches(statement):
            return True
        for call in ast.walk(statement):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in launchers:
                return True
    return False


def _handlers(names: ResolvedNames, node: ast.Try) -> Iterator[StaticFinding]:
    for handler in node.handlers:
        computed = computes(names, ast.Module(handler.body, []))
        helper = _own_computation(names, handler)
        if computed or helper:
            message = f"Where the kernel fails it computes the result otherwise ({computed or helper})."
            yield StaticFinding("fallback", f"handler {computed or helper}", handler.lineno, message, True)
        elif all(isinstance(s, (ast.Pass, ast.Continue)) or _constant(s) for s in handler.body):
            message = "It swallows errors of a kernel's launch."
            yield StaticFinding("fallback", "swallows", handler.lineno, message, True)
        elif not any(isinstance(s, ast.Raise) for s in ast.walk(ast.Module(handler.body, []))):
            message = "It goes on where a kernel's launch fails."
            yield StaticFinding("fallback", "goes on", handler.lineno, message)


def _constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _own_computation(names: ResolvedNames, node: ast.AST) -> str | None:
    """Return a function of the file, called below ``node``, that computes with a framework and launches
    nothing."""
    functions = {n.name: n for n in names.tree.body if isinstance(n, ast.FunctionDef)}
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            function = functions.get(call.func.id)
            if function is None or function.name in names.kernels or names.launches(function):
                continue
            if computes(names, function):
                return f"through {function.name}"
    return None


def _branches(names: ResolvedNames, function: Function) -> Iterator[StaticFinding]:
    for node in ast.walk(function):
        if isinstance(node, ast.If):
            for branch in (node.body, node.orelse):
                returns = [s for s in branch if isinstance(s, ast.Return) and s.value is not None]
                for found in returns:
                    if not names.launches(ast.Module(branch, [])) and (
                        (by := computes(names, found)) or (by := _own_computation(names, found))
                    ):
                        message = f"On one branch it returns a result of the framework ({by})."
                        yield StaticFinding("fallback", f"branch {by}", found.lineno, message)
