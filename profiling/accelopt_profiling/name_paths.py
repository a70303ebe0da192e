"""Resolves the names of a Python text to the dotted paths that they were imported as."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache

#: Names that packages hand on from a module of their own, which is Triton's, or nothing where Triton is missing.
_HANDED_ON = {"triton": "triton", "tl": "triton.language"}


def import_paths(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return the names that an import binds, each with its dotted path.

    ``import a.b`` binds ``a``. The path of a relative import begins with its dots; a star import is the name ``*``.
    """
    if isinstance(node, ast.Import):
        roots = {a.name.partition(".")[0]: a.name.partition(".")[0] for a in node.names if not a.asname}
        return roots | {a.asname: a.name for a in node.names if a.asname}
    module = f"{'.' * node.level}{node.module}." if node.module else "." * node.level
    names = {a.asname or a.name: f"{module}{a.name}" for a in node.names}
    if (node.module or ".").partition(".")[0] != "triton":
        names |= {a.asname or a.name: _HANDED_ON[a.name] for a in node.names if a.name in _HANDED_ON}
    return names


@lru_cache(maxsize=64)
def all_import_paths(tree: ast.Module) -> Mapping[str, str]:
    """Return what all imports of a file bind, wherever they stand; of one name the last."""
    paths: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            paths |= import_paths(node)
    return paths


def dotted_path(node: ast.AST, meaning: Callable[[str], str | None]) -> str | None:
    """Return the dotted path of a name, an attribute, or a module that is imported by its name.

    ``meaning`` returns the path of a name alone. None: the expression is nothing that was imported.
    """
    match node:
        case ast.Name(name):
            return meaning(name)
        case ast.Attribute(value, name):
            base = dotted_path(value, meaning)
            return f"{base}.{name}" if base else None
        case ast.Call(function, [ast.Constant(str() as module), *_]):
            is_import = isinstance(function, ast.Name) and function.id == "__import__"
            if is_import or dotted_path(function, meaning) in ("importlib.import_module", "__import__"):
                return module
    return None
