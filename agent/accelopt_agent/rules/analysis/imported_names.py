"""Resolves dotted names to import paths, however the import is spelled, and spells a path as the file would."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator

import libcst as cst


def dotted(node: cst.BaseExpression) -> str | None:
    """Return ``a.b.c`` as written, or None for anything but names and attributes."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr.value}" if base else None
    return None


class ImportedNames:
    """Import bindings of a module and of the functions around and inside a kernel; later ones win."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self._assigned: set[str] = set()

    def bind_all(self, body: cst.CSTNode) -> None:
        """Bind the imports and aliases in ``body``, not looking into functions and classes below it."""
        for statement in _statements(body):
            if isinstance(statement, cst.Import):
                self._bind_import(statement)
            elif isinstance(statement, cst.ImportFrom):
                self._bind_import_from(statement)
            elif isinstance(statement, cst.Assign):
                self._bind_assign(statement)

    def hide(self, name: str) -> None:
        """``name`` is a parameter or local variable from here on."""
        self._paths.pop(name, None)

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
        """Return whether a function is unknown: of none of the packages, no builtin and no method."""
        path = self.path(function)
        if path is not None:
            return path.partition(".")[0] not in packages
        if isinstance(function, cst.Name):
            return not hasattr(builtins, function.value)
        return not isinstance(function, cst.Attribute)

    def imported(self) -> set[str]:
        """Return the names that an import binds and no assignment: modules and functions, never tensors."""
        return set(self._paths) - self._assigned

    def spelled(self, path: str) -> str | None:
        """Return the shortest spelling of ``path`` that the file's imports allow, or None."""
        ways = []
        for name, bound in self._paths.items():
            if path == bound:
                ways.append(name)
            elif path.startswith(f"{bound}."):
                ways.append(f"{name}{path[len(bound) :]}")
        return min(ways, key=lambda way: (way.count("."), len(way)), default=None)

    def _bind_import(self, node: cst.Import) -> None:
        for alias in node.names:
            path = dotted(alias.name)
            if path is None:
                continue
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                self._paths[alias.asname.name.value] = path
            else:
                root = path.partition(".")[0]
                self._paths[root] = root

    def _bind_import_from(self, node: cst.ImportFrom) -> None:
        if node.module is None or node.relative or isinstance(node.names, cst.ImportStar):
            return
        module = dotted(node.module)
        for alias in node.names:
            name = dotted(alias.name)
            bound = alias.asname.name if alias.asname is not None else alias.name
            if module and name and isinstance(bound, cst.Name):
                self._paths[bound.value] = f"{module}.{name}"

    def _bind_assign(self, node: cst.Assign) -> None:
        if len(node.targets) == 1 and isinstance(target := node.targets[0].target, cst.Name):
            path = self.path(node.value)
            self._assigned.add(target.value)
            if path is not None:
                self._paths[target.value] = path
            else:
                self.hide(target.value)


def _statements(node: cst.CSTNode) -> Iterator[cst.BaseSmallStatement]:
    body = getattr(node, "body", ())
    children = [*(body if isinstance(body, (list, tuple)) else [body])]
    children += [
        *getattr(node, "handlers", ()),
        getattr(node, "orelse", None),
        getattr(node, "finalbody", None),
    ]
    for child in children:
        if isinstance(child, cst.BaseSmallStatement):
            yield child
        elif isinstance(child, cst.CSTNode) and not isinstance(child, (cst.FunctionDef, cst.ClassDef)):
            yield from _statements(child)
