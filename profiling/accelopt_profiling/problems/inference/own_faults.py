"""Tell the faults that are a file's own, whatever arguments its kernels get: no argument mends them."""

from __future__ import annotations

import ast
import re
import traceback
from types import ModuleType

from accelopt_profiling.ran import statements_of

#: What Python says of a call that does not fit what is called.
_CALL = re.compile(
    r"unexpected keyword argument|missing \d+ required|multiple values for|takes (\d+|no|exactly|at|from)\b.*argument"
)
#: Faults of values, which may come from any argument through memory.
_VALUES = re.compile(r"^An index |uninitialised|before it (is|was) written")


def own_fault_line(error: BaseException | None, file: str, text: str) -> int:
    """Return the line of ``file`` with ``text`` whose fault ``error`` is, whatever the arguments are; 0 where they may
    be at fault.

    Such are names and functions that there are not, calls that do not fit, and what a statement raises in which
    nothing depends on an argument (types aside).
    """
    lines = [
        f.lineno for f in traceback.extract_tb(error.__traceback__ if error else None) if f.filename == file
    ]
    if error is None or not lines or not lines[-1]:
        return 0
    line = lines[-1]
    if type(error) is NameError or isinstance(error, (ImportError, SyntaxError)):
        return line
    if isinstance(error, AttributeError):
        owner = getattr(error, "obj", None)
        return line if isinstance(owner, ModuleType) else 0
    if getattr(error, "code", "") == "unsupported" or type(error).__name__ == "UnsupportedOperationError":
        return line
    if isinstance(error, TypeError) and _CALL.search(str(error)):
        return line
    if _VALUES.search(str(error)) or not isinstance(error, Exception):
        return 0
    return line if _is_fixed(ast.parse(text), line) else 0


def _is_fixed(tree: ast.Module, line: int) -> bool:
    """Tell that the innermost statement on ``line`` uses nothing that depends on a parameter of its function."""
    inside = [
        (f, s)
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef)
        for s in statements_of(f)
        if s.lineno <= line <= (s.end_lineno or s.lineno) and not hasattr(s, "body")
    ]
    if not inside:
        return False
    function, statement = max(inside, key=lambda found: (found[0].lineno, found[1].lineno))
    given = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    grown = True
    while grown:
        before = len(given)
        for s in statements_of(function):
            value = s.iter if isinstance(s, ast.For) else getattr(s, "value", None)
            targets = getattr(s, "targets", None) or [getattr(s, "target", None)]
            if isinstance(value, ast.expr) and _names(value) & given:
                given |= {name for t in targets if isinstance(t, ast.expr) for name in _names(t)}
        grown = len(given) > before
    asked = {name for s in _around(function, line) for name in _names(s)}
    return not (_names(statement) | asked) & given


def _around(function: ast.FunctionDef, line: int) -> list[ast.expr]:
    """Return what the loops and branches around a line go over and ask."""
    heads = [s for s in statements_of(function) if s.lineno < line <= (s.end_lineno or s.lineno)]
    return [part for s in heads if isinstance(part := getattr(s, "iter", getattr(s, "test", None)), ast.expr)]


def _names(node: ast.AST) -> set[str]:
    """Return the names in an expression or a statement, but for those that only a type is taken of."""
    if isinstance(node, ast.Attribute) and node.attr == "dtype":
        return set()
    if isinstance(node, ast.Name):
        return {node.id}
    return {name for child in ast.iter_child_nodes(node) for name in _names(child)}
