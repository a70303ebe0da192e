"""Find assignments to what is not the file's own: attributes of imported modules, tensors and frozen names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.names import ResolvedNames, StaticFinding

#: Settings that libraries offer for assignment.
_SETTINGS = (
    "torch.backends.",
    "torch._dynamo.config.",
    "torch._inductor.config.",
    "os.environ",
    "triton.knobs.",
)
#: Settings that lower the precision of the framework's own arithmetic.
_PRECISION = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction",
              "fp32_precision")  # fmt: skip


def patching(names: ResolvedNames) -> Iterator[StaticFinding]:
    """Yield assignments, deletions, ``setattr`` and dictionary writes that change an imported module or a shared
    class."""
    for node in ast.walk(names.tree):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.For, ast.With)):
            for target in _targets(node):
                yield from _target(names, target)
        elif isinstance(node, ast.Call):
            yield from _call(names, node)


def _patch(node: ast.expr, subject: str, message: str) -> StaticFinding:
    return StaticFinding("patches", subject, node.lineno, message, True)


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, (ast.Assign, ast.Delete)):
        found = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)):
        found = [node.target]
    elif isinstance(node, ast.With):
        found = [item.optional_vars for item in node.items if item.optional_vars is not None]
    else:
        found = []
    flat: list[ast.expr] = []
    while found:
        target = found.pop(0)
        if isinstance(target, (ast.Tuple, ast.List)):
            found = [*target.elts, *found]
        else:
            flat.append(target)
    return flat


def _target(names: ResolvedNames, target: ast.expr) -> Iterator[StaticFinding]:
    if isinstance(target, ast.Attribute):
        owner = names.dotted(target.value)
        whole = f"{owner}.{target.attr}"
        if owner and whole.startswith(_SETTINGS):
            if target.attr in _PRECISION:
                yield StaticFinding("low-precision", whole, target.lineno, f"It sets {whole}.")
        elif owner:
            yield _patch(target, f"changes {whole}", f"It changes {whole}, which is not its own.")
        elif isinstance(target.value, ast.Call) and names.dotted(target.value.func) == "type":
            yield _patch(target, "type()", "It changes a class that it looked up.")
        elif target.attr in ("__class__", "__dict__", "__code__", "__defaults__"):
            yield _patch(target, f".{target.attr}", f"It replaces `.{target.attr}` of an object.")
    elif isinstance(target, ast.Subscript):
        inner = target.value
        if isinstance(inner, ast.Attribute) and inner.attr == "__dict__":
            yield _patch(target, "__dict__[]", "It writes into an object's `__dict__`.")
        elif isinstance(inner, ast.Call) and names.dotted(inner.func) in ("vars", "globals", "locals"):
            yield _patch(target, "namespace", "It writes into a namespace.")
        elif names.dotted(inner) in ("sys.modules", "sys.path_importer_cache"):
            yield StaticFinding(
                "patches", "sys.modules[]", target.lineno, "It replaces an imported module.", True
            )


def _call(names: ResolvedNames, node: ast.Call) -> Iterator[StaticFinding]:
    called = names.dotted(node.func)
    if called in ("setattr", "delattr", "object.__setattr__", "type.__setattr__") and node.args:
        owner = names.dotted(node.args[0])
        if owner and not owner.startswith(_SETTINGS):
            yield StaticFinding(
                "patches", f"{owner}.", node.lineno, f"It changes an attribute of {owner}.", True
            )
    elif called and called.startswith("torch.library.") and _of_the_framework(node):
        message = f"It registers an implementation of the framework's own operators ({called})."
        yield _patch(node, f"registers by {called}", message)
    elif called and called.startswith(("unittest.mock", "mock.")):
        yield _patch(node, called, f"It uses {called}.")
    elif isinstance(node.func, ast.Attribute) and node.func.attr in ("update", "setdefault", "pop", "clear"):
        inner = node.func.value
        if isinstance(inner, ast.Attribute) and inner.attr == "__dict__":
            yield StaticFinding(
                "patches", "__dict__", node.lineno, "It changes an object's `__dict__`.", True
            )
        elif names.dotted(inner) == "sys.modules":
            yield StaticFinding(
                "patches", "sys.modules", node.lineno, "It changes the imported modules.", True
            )


def _of_the_framework(node: ast.Call) -> bool:
    """Check whether an operator library that is named is torch's: "aten", or "prims::add"."""
    named = [a.value for a in [*node.args, *(k.value for k in node.keywords)] if isinstance(a, ast.Constant)]
    return any(isinstance(n, str) and n.split("::")[0] in ("aten", "prims", "quantized") for n in named)
