"""Resolve the names of a candidate's file, imported modules and their attributes, as dotted paths; every reader of the
text uses them, and yields findings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from accelopt_profiling.kernels import find_kernels

Function = ast.FunctionDef | ast.AsyncFunctionDef


class ResolvedNames:
    """A parsed file. ``dotted`` resolves an expression to a dotted path through the file's imports and plain aliases;
    built-in functions are themselves.
    """

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.tree = tree
        self.imported: dict[str, str] = {}
        self.defined: set[str] = set()
        kernels = find_kernels(text).kernels
        self.kernels = {k.name.split(".")[-1].split("#")[0] for k in kernels}
        #: Whether Python runs the bodies of the kernels, to trace what they do.
        self.traced = any(k.dialect == "nki" for k in kernels)
        self.parents: dict[ast.AST, ast.AST] = {}
        self._locals: dict[Function, set[str]] = {}
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        self._bind(tree)

    def _bind(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    root = alias.name.split(".")[0]
                    self.imported[alias.asname or root] = alias.name if alias.asname else root
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.defined.add(node.name)
        for name, value in _aliases(tree):  # ``F = torch.nn.functional``
            dotted = self.dotted(value)
            if (
                dotted
                and name not in self.imported
                and name not in self.defined
                and (not isinstance(value, ast.Name) or value.id in self.imported or dotted in BUILTINS)
            ):
                self.imported[name] = dotted

    def dotted(self, node: ast.AST) -> str | None:
        """Return the dotted path of a name or attribute of something imported, or of a built-in; None for
        anything else."""
        if isinstance(node, ast.Name):
            if node.id in self.imported:
                return self.imported[node.id]
            return node.id if node.id in BUILTINS and node.id not in self.defined else None
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else None
        imports = ("importlib.import_module", "__import__")
        if isinstance(node, ast.Call) and node.args and self.dotted(node.func) in imports:
            return _text(node.args[0])
        return None

    def calls(self, within: ast.AST | None = None) -> Iterator[tuple[ast.Call, str]]:
        """Yield every call with the dotted path of what is called ("" where that is not known)."""
        for node in ast.walk(within or self.tree):
            if isinstance(node, ast.Call):
                yield node, self.dotted(node.func) or ""

    def function_of(self, node: ast.AST) -> Function | None:
        """Return the innermost function around ``node``."""
        place: ast.AST | None = self.parents.get(node)
        while place is not None and not isinstance(place, (ast.FunctionDef, ast.AsyncFunctionDef)):
            place = self.parents.get(place)
        return place

    def scoped(self, node: ast.AST, name: str) -> str:
        """Return ``name`` as it is meant at ``node``: as it is where it is a global, otherwise with the function's
        line."""
        function = self.function_of(node)
        while function is not None:
            if function not in self._locals:
                self._locals[function] = local_names(function)
            if name in self._locals[function]:
                return f"{name}@{function.lineno}"
            function = self.function_of(function)
        return name

    def in_kernel(self, node: ast.AST) -> bool:
        """Check whether ``node`` belongs to a kernel's own body."""
        place: ast.AST | None = node
        while place is not None:
            if isinstance(place, (ast.FunctionDef, ast.AsyncFunctionDef)) and place.name in self.kernels:
                return True
            place = self.parents.get(place)
        return False

    def launches(self, within: ast.AST) -> bool:
        """Check whether a kernel of the file is called somewhere below ``within``."""
        for node in ast.walk(within):
            if isinstance(node, ast.Call):
                target = node.func
                if isinstance(target, ast.Subscript):
                    target = target.value
                if isinstance(target, ast.Attribute) and target.attr in ("run", "warmup"):
                    target = target.value
                if isinstance(target, ast.Name) and target.id in self.kernels:
                    return True
        return False


def local_names(function: Function) -> set[str]:
    """Return the parameters of a function and what it binds, without what it declares global or nonlocal."""
    arguments = function.args
    found = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    found |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
    elsewhere: set[str] = set()
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        else:
            waiting += ast.iter_child_nodes(node)
    return found - elsewhere


def _aliases(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are bound to: assignments, also of tuples and inside expressions, and defaults."""
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr):
            yield node.target.id, node.value
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = [*node.args.posonlyargs, *node.args.args]
            defaults = node.args.defaults
            for argument, default in zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True):
                yield argument.arg, default
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                yield from ((t.id, value) for t, value in pairs if isinstance(t, ast.Name))


def _text(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


BUILTINS = frozenset(
    [
        "__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "id", "input",
        "locals", "open", "setattr", "vars", "print", "type", "object",
    ]
)  # fmt: skip


@dataclass(frozen=True)
class StaticFinding:
    """A finding at a 1-based ``line``. ``code`` is stable (see docs/explanation/gate.md), ``subject`` what the finding
    is about: a name in the text, or a kind. An original that has a finding with the same two does the same. One that is
    ``certain`` has no honest use in a kernel file and refuses the candidate; the others are worth knowing.
    """

    code: str
    subject: str
    line: int
    message: str
    certain: bool = False
