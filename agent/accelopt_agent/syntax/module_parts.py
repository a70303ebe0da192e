"""Reads a file as its definitions, its imports and the other statements, and follows which definition uses which."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from accelopt_profiling.source_text import syntax_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class ModuleParts:
    """``definitions`` are the functions, classes and named values of the top level, also those inside of its ``if``
    and ``try``, by name and in order; ``statements`` what else is run on import, its definitions taken out.
    ``imported`` are the modules that it imports, ``aliases`` the names that they get."""

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    statements: list[ast.stmt] = field(default_factory=list)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    imported: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)

    @property
    def bound(self) -> set[str]:
        """Every name of the top level."""
        return self.definitions.keys() | self.aliases.keys()

    def is_value(self, name: str) -> bool:
        """Return whether ``name`` is bound by an assignment."""
        return any(isinstance(n, (ast.Assign, ast.AnnAssign)) for n in self.definitions.get(name, ()))

    def names_in(self, node: ast.AST) -> set[str]:
        """Return the names of the top level that ``node`` uses."""
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & self.bound

    def uses(self, name: str) -> set[str]:
        """Return the names of the top level that the definition ``name`` uses."""
        return {u for node in self.definitions.get(name, ()) for u in self.names_in(node)}

    def reached(self, names: Iterable[str], but: Iterable[str] = ()) -> set[str]:
        """Return ``names`` and all definitions that they use, directly or through others.

        ``but`` are not entered.
        """
        closed, waiting, definitions = set(but), [n for n in names if n in self.definitions], set[str]()
        while waiting:
            name = waiting.pop()
            if name not in definitions and name not in closed:
                definitions.add(name)
                waiting += [u for u in self.uses(name) if u in self.definitions]
        return definitions

    def leading_to(self, name: str) -> set[str]:
        """Return ``name`` and the functions and classes that reach it."""
        return {
            n for n, nodes in self.definitions.items()
            if n == name or (isinstance(nodes[-1], (*_FUNCTIONS, ast.ClassDef)) and name in self.reached([n]))
        }  # fmt: skip

    def signature(self, name: str) -> list[str]:
        """Return how the definitions ``name`` are called: parameters without annotations, a class with its methods', a
        value as it is."""
        return [_signature(node) for node in self.definitions.get(name, ())]


@lru_cache(maxsize=64)
def read_parts(text: str) -> ModuleParts:
    """Read ``text``.

    Raises:
        SyntaxError: it does not parse.
    """
    parts = ModuleParts()
    tree = syntax_of(text)
    for number, statement in enumerate(tree.body):
        if number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        _read(statement, parts)
    return parts


def same_code(one: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> bool:
    """Return whether two definitions are the same. Layout and comments do not count."""
    return [ast.dump(n) for n in one] == [ast.dump(n) for n in other]


def name_of(statement: ast.stmt) -> str | None:
    """Return the name that a definition binds; None for another statement."""
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        return statement.name
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    return None


def _read(statement: ast.stmt, parts: ModuleParts) -> None:
    name = name_of(statement)
    if name is not None:
        parts.definitions.setdefault(name, []).append(statement)
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        _read_import(statement, parts)
    elif isinstance(statement, (ast.If, ast.Try)):
        parts.statements.append(_without_definitions(statement, parts))
    else:
        parts.statements.append(statement)


def _read_import(node: ast.Import | ast.ImportFrom, parts: ModuleParts) -> None:
    parts.imports.append(node)
    module = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        whole = module or alias.name
        parts.imported.add(whole)
        parts.aliases[alias.asname or alias.name.partition(".")[0]] = whole


def _without_definitions(statement: ast.If | ast.Try, parts: ModuleParts) -> ast.stmt:
    """Take the functions, classes and imports of a conditional statement out of a copy of it."""
    bare = copy.copy(statement)
    for name in ("body", "orelse", "finalbody", "handlers"):
        children: list[ast.AST] = []
        for child in getattr(statement, name, []):
            if isinstance(child, ast.ExceptHandler):
                handler = copy.copy(child)
                handler.body = [c for c in child.body if not _taken(c, parts)]
                children.append(handler)
            elif isinstance(child, (ast.If, ast.Try)):
                children.append(_without_definitions(child, parts))
            elif not _taken(child, parts):
                children.append(child)
        if hasattr(statement, name):
            setattr(bare, name, children)
    return bare


def _taken(child: ast.stmt, parts: ModuleParts) -> bool:
    if isinstance(child, (*_FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
        _read(child, parts)
        return True
    return False


def _signature(node: ast.stmt) -> str:
    if isinstance(node, _FUNCTIONS):
        arguments = copy.deepcopy(node.args)
        for argument in ast.walk(arguments):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        return ast.dump(arguments)
    if isinstance(node, ast.ClassDef):
        methods = [
            f"{m.name}{_signature(m)}" for m in node.body
            if isinstance(m, _FUNCTIONS) and (m.name.startswith("__") or not m.name.startswith("_"))
        ]  # fmt: skip
        return "; ".join([*map(ast.dump, node.bases), *sorted(methods)])
    return ast.dump(node)
