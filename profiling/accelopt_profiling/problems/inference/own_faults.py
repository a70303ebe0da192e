"""Tell the faults that are a file's own, whatever arguments its kernels get: no argument mends them."""

from __future__ import annotations

import ast
import re
import traceback
from types import ModuleType

from accelopt_profiling.ran import dependents, statements_of
from accelopt_profiling.source_text import syntax_of

#: What Python says of a call that does not fit what is called.
_CALL = re.compile(
    r"unexpected keyword argument|missing \d+ required|multiple values for|takes (\d+|no|exactly|at|from)\b.*argument"
)
#: Faults of an operand's type, which may be an argument's; not what is said of a name of the SDK.
_TYPE = re.compile(r"^(?!nki\.|neuronxcc\.).*\b(b?float\d|u?int\d|bool\b)")
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
        return 0 if is_of_type(error) and not _is_fixed(syntax_of(text), line, types=True) else line
    if isinstance(error, TypeError) and _CALL.search(str(error)):
        return line
    if _VALUES.search(str(error)) or not isinstance(error, Exception):
        return 0
    return line if _is_fixed(syntax_of(text), line) else 0


def is_of_type(error: BaseException) -> bool:
    """Tell that what is not supported is the type of an operand."""
    return _TYPE.search(str(error)) is not None


def _is_fixed(tree: ast.Module, line: int, types: bool = False) -> bool:
    """Tell that the innermost statement on ``line`` uses nothing that depends on a parameter of its function; with
    ``types`` not on its type either."""
    inside = [
        (f, s)
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef)
        for s in statements_of(f)
        if s.lineno <= line <= (s.end_lineno or s.lineno) and not hasattr(s, "body")
    ]
    if not inside:
        return False
    function, statement = max(inside, key=lambda pair: (pair[0].lineno, pair[1].lineno))
    parameters = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    by_arguments = dependents(function, parameters, lambda value, names: bool(_names(value, types) & names))
    heads = {name for head in _heads_around(function, line) for name in _names(head, types)}
    return not (_names(statement, types) | heads) & by_arguments


def _heads_around(function: ast.FunctionDef, line: int) -> list[ast.expr]:
    """Return what the loops and branches around a line go over and ask."""
    heads = [s for s in statements_of(function) if s.lineno < line <= (s.end_lineno or s.lineno)]
    return [part for s in heads if isinstance(part := getattr(s, "iter", getattr(s, "test", None)), ast.expr)]


def _names(node: ast.AST, types: bool) -> set[str]:
    """Return the names in an expression or a statement.

    With ``types`` also those that only a type is taken of.
    """
    if isinstance(node, ast.Attribute) and node.attr == "dtype" and not types:
        return set()
    if isinstance(node, ast.Name):
        return {node.id}
    return {name for child in ast.iter_child_nodes(node) for name in _names(child, types)}
