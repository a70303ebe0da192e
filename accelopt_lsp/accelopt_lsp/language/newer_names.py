"""The edits that write Python's own functions where NKI has deprecated its names for them."""

from __future__ import annotations

import ast
import builtins

from accelopt_agent.suggestions.text_edit import TextEdit
from accelopt_profiling.name_paths import all_import_paths, dotted_path
from accelopt_profiling.nki.current.versions import change
from accelopt_profiling.source_text import parse_python, source_lines


def newer_names(text: str, version: str) -> list[TextEdit]:
    """Return an edit for each call of a function that ``version`` deprecates for one of Python's: "nl.affine_range(4)"
    becomes "range(4)". A name that the file binds itself is left alone, and so are arguments that are given by name.

    Raises:
        SyntaxError: the text does not parse.
    """
    tree, lines = parse_python(text), source_lines(text)
    paths = all_import_paths(tree)
    own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    edits = []
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call) and not n.keywords):
        path = dotted_path(call.func, paths.get)
        reason = change("names", path, version) if path else None
        if reason is None or reason.kind != "deprecated" or not hasattr(builtins, reason.instead):
            continue
        if reason.instead not in own | set(paths):
            start, end = _column(lines, call.func), _column(lines, call.func, end=True)
            edits.append(TextEdit(*start, *end, reason.instead))
    return edits


def _column(lines: list[str], node: ast.expr, end: bool = False) -> tuple[int, int]:
    """Return the 0-based line and column of a node in code points; Python counts bytes."""
    line, column = (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)
    assert line is not None
    assert column is not None
    return line - 1, len(lines[line - 1].encode()[:column].decode())
