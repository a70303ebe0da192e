"""Classify a Python file by its names: the kind of its problem, or what it lacks."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_profiling.name_paths import import_paths
from accelopt_profiling.problems.layout import ProblemLayout
from accelopt_profiling.source_text import ParsedPython, is_main_guard


@dataclass(frozen=True)
class Recognised:
    """The kind of a problem file and its top-level ``names``.

    ``kind`` is None when the file is no problem; ``fault`` then says why, at ``line`` (1-based) of the file.
    ``unreferenced``: it gives inputs and no reference, so that the kernels can be measured, and their results not
    checked. ``inferred``: it says that nobody has looked at its inputs.
    """

    kind: str | None
    fault: str = ""
    line: int = 1
    names: frozenset[str] = frozenset()
    inferred: bool = False
    unreferenced: bool = False


def recognise_python(source: ParsedPython, layouts: Sequence[ProblemLayout]) -> Recognised:
    """Classify a Python file by the ``layouts`` that names tell, the first of which has names that others have too; of
    a file that holds parts of a problem, ``fault`` names what is missing."""
    if source.fault:
        return Recognised(None, f"it does not parse: {source.fault}", source.line)
    defined = top_level_names(source.tree)
    names = frozenset(defined)
    general, *special = [layout for layout in layouts if layout.names]
    for layout in (general, *special):
        if names >= set(layout.names):
            return Recognised(layout.kind, names=names, inferred=_says_inferred(source.tree))
    for layout in (*special, general):
        distinctive = [n for n in layout.names if n in names and n not in general.least]
        if distinctive:
            missing = ", ".join(f"`{n}`" for n in layout.names if n not in names)
            present = ", ".join(f"`{n}`" for n in layout.names if n in names)
            return Recognised(None, f"it has {present} but not {missing}", defined[distinctive[0]], names)
    if names >= set(general.least):
        inferred = _says_inferred(source.tree)
        return Recognised(general.kind, names=names, inferred=inferred, unreferenced=True)
    neither = " nor ".join(f"`{name}`" for name in general.names)
    return Recognised(None, f"it has neither {neither}", names=names)


def _says_inferred(tree: ast.Module) -> bool:
    """Return whether the file holds ``inferred = True``, as a written problem does until a person removes it."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and node.value.value is True
        and [t.id for t in node.targets if isinstance(t, ast.Name)] == ["inferred"]
        for node in tree.body
    )


def top_level_names(tree: ast.Module) -> dict[str, int]:
    """Return the functions, classes and assigned names of a module's top level with their lines.

    ``if`` and ``try`` blocks are included.
    """
    names: dict[str, int] = {}
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.setdefault(node.name, node.lineno)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    names.setdefault(target.id, node.lineno)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in import_paths(node):
                names.setdefault(name, node.lineno)
        elif isinstance(node, ast.Try):
            waiting = [*node.body, *(s for h in node.handlers for s in h.body), *node.orelse, *waiting]
        elif isinstance(node, ast.If) and not is_main_guard(node):
            waiting = [*node.body, *node.orelse, *waiting]
    return names
