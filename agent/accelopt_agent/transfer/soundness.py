"""Refuses a merged file that Python itself could not run: a call that names a keyword twice, a name that is read before
anything binds it."""

from __future__ import annotations

import ast
import builtins

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.name_paths import import_paths
from accelopt_profiling.source_text import syntax_of

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_sound(result: str, before: str, kernel: str) -> bool:
    """Return whether ``result`` parses, still holds the kernel in its dialect, and reads no name too early that
    ``before`` does not read too early as well."""
    try:
        if _repeats(syntax_of(result)):
            return False
        unbound = _unbound(result) - _unbound(before)
    except SyntaxError:
        return False
    dialects = {k.name: k.dialect for k in find_kernels(before).kernels}
    return (
        not unbound
        and {k.name: k.dialect for k in find_kernels(result).kernels}.get(kernel) == dialects[kernel]
    )


def _repeats(tree: ast.AST) -> bool:
    """Return whether a call names a keyword twice, or a function a parameter, which the parser lets pass."""
    groups = [[k.arg for k in n.keywords if k.arg] for n in ast.walk(tree) if isinstance(n, ast.Call)]
    groups += [
        [a.arg for a in ast.walk(n.args) if isinstance(a, ast.arg)]
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef)
    ]
    return any(len(names) != len(set(names)) for names in groups)


def _unbound(text: str) -> set[tuple[str, str]]:
    """Return the names that a function reads before something binds them, each with its function."""
    tree = syntax_of(text)
    outside = set(dir(builtins)) | {"__file__", "__name__"}
    for statement in tree.body:
        outside |= _bound(statement, inside=not isinstance(statement, (*_Function, ast.ClassDef)))
    reads: set[tuple[str, str]] = set()
    for statement in tree.body:
        name = getattr(statement, "name", "")
        inside = _bound(statement, inside=True)
        reader = _BoundNameReader(outside - inside | {name}, outside | inside)
        if isinstance(statement, _Function):
            reader.read_function(statement)
        else:
            reader.known |= inside
            reader.visit(statement)
        reads |= {(name, early) for early in reader.early}
    return reads


class _BoundNameReader(ast.NodeVisitor):
    """Reads a function in the order in which it runs, every branch taken and every loop once. ``known`` are the names
    bound so far, ``ever`` those that are bound anywhere, which is all that what runs later asks for."""

    def __init__(self, names: set[str], ever: set[str]) -> None:
        self.known, self.ever, self.early = names, ever, set[str]()

    def read_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.known |= {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        self._each(*node.body)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id not in self.known:
            self.early.add(node.id)
        elif isinstance(node.ctx, ast.Store):
            self.known.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._each(node.value, *node.targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._each(node.annotation, node.value)
        if node.value is not None:
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.visit_Name(ast.Name(node.target.id, ast.Load()))
        self._each(node.value, node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._each(node.value, node.target)

    def visit_For(self, node: ast.For) -> None:
        self._each(node.iter, node.target, *node.body, *node.orelse)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.known |= _bound(node, inside=False)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.known |= _bound(node, inside=False)

    visit_ImportFrom = visit_Import

    def _later(self, node: ast.AST) -> None:
        """Read what runs later, or binds names of its own: any name bound somewhere will do."""
        self.known |= _bound(node, inside=False)
        self.early |= {
            n.id
            for n in ast.walk(node)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in self.ever
        }

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _later
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Match = _later

    def _each(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)


def _bound(statement: ast.AST, *, inside: bool) -> set[str]:
    """Return the names that a statement binds, those bound ``inside`` of it too."""
    names: set[str] = set()
    nodes = ast.walk(statement) if inside else iter([statement])
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= import_paths(node).keys()
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names
