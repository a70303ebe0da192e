"""Resolves dotted names to import paths, and spells paths for a file."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from accelopt_profiling.name_paths import dotted_path, import_paths


def dotted(node: cst.BaseExpression) -> str | None:
    """Return ``a.b.c`` as written, or None for anything but names and attributes."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr.value}" if base else None
    return None


class ImportedNames:
    """Import bindings of a module and of the functions around a kernel.

    Later ones win.
    """

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self._assigned: set[str] = set()

    def bind_all(self, body: Sequence[ast.stmt]) -> None:
        """Bind the imports and aliases in ``body``, none of inner functions."""
        for statement in _statements(body):
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                paths = import_paths(statement).items()
                self._paths |= {name: path for name, path in paths if not path.startswith(".")}
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._bind(statement.targets[0], statement.value)

    def bind_arguments(self, arguments: ast.arguments) -> None:
        """Hide what a function's parameters hide."""
        for argument in ast.walk(arguments):
            if isinstance(argument, ast.arg):
                self._paths.pop(argument.arg, None)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        """Bind ``F = torch.nn.functional``.

        Another value hides the name, but for the None of what is missing.
        """
        if not isinstance(target, ast.Name):
            return
        path = dotted_path(value, self._paths.get)
        self._assigned.add(target.id)
        if path is not None:
            self._paths[target.id] = path
        elif not (isinstance(value, ast.Constant) and value.value is None):
            self._paths.pop(target.id, None)

    def path(self, node: cst.BaseExpression) -> str | None:
        """Return the full path that ``node`` means ("neuronxcc.nki.language.load").

        None when it is not imported.
        """
        written = dotted(node)
        if written is None:
            return None
        root, _, rest = written.partition(".")
        base = self._paths.get(root)
        if base is None:
            return None
        return f"{base}.{rest}" if rest else base

    def foreign(self, function: cst.BaseExpression, packages: Collection[str]) -> bool:
        """Return whether a function is neither builtin, method nor of ``packages``."""
        path = self.path(function)
        if path is not None:
            return path.partition(".")[0] not in packages
        if isinstance(function, cst.Name):
            return not hasattr(builtins, function.value)
        return not isinstance(function, cst.Attribute)

    def imported(self) -> set[str]:
        """Return the names that an import binds and no assignment.

        They are modules and functions, never tensors.
        """
        return set(self._paths) - self._assigned

    def spelled(self, path: str) -> str | None:
        """Return the shortest spelling of ``path`` in the file, or None."""
        ways = []
        for name, bound in self._paths.items():
            if path == bound:
                ways.append(name)
            elif path.startswith(f"{bound}."):
                ways.append(f"{name}{path[len(bound) :]}")
        return min(ways, key=lambda way: (way.count("."), len(way)), default=None)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of ``body`` in source order, those of blocks too."""
    for statement in body:
        yield statement
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for name in ("body", "handlers", "cases", "orelse", "finalbody"):
                for part in getattr(statement, name, ()):
                    yield from _statements([part] if isinstance(part, ast.stmt) else part.body)
