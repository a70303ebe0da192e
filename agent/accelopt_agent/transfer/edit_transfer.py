"""Applies the edit of a slow-fast pair to another kernel, by syntax."""

from __future__ import annotations

import ast
import copy

from accelopt_agent.syntax.lines import split_lines
from accelopt_agent.syntax.scopes import scopes_of
from accelopt_agent.transfer.matching import Occurrence, occurrences
from accelopt_agent.transfer.template import Function, Template, declarations, names_in, templates_of
from accelopt_profiling.source_text import parse_python


def transfer(slow_text: str, fast_text: str, pair_kernel: str, text: str, kernel: str) -> str | None:
    """Apply the edits of the pair to ``kernel`` in ``text`` wherever they fit; None where none fits.

    The result is not known to be right: the gate decides that. Comments and layout outside the changed statements stay.
    """
    try:
        slow, fast = (_function(t, pair_kernel) for t in (slow_text, fast_text))
        target = _function(text, kernel)
    except SyntaxError:
        return None
    if slow is None or fast is None or target is None:
        return None
    modules = imported_names(slow_text) | imported_names(fast_text)
    changed = False
    for template in templates_of(slow, fast, modules):
        target = _function(text, kernel)
        if target is None:
            break
        places = occurrences(template, target, modules)
        if places and _visible(template, modules, imported_names(text)):
            text, changed = _rewritten(text, target, template, places), True
    if not changed:
        return None
    text = _without_unused_buffers(text, kernel)
    try:
        parse_python(text)
    except SyntaxError:
        return None
    return text


def imported_names(text: str) -> frozenset[str]:
    """Return all names that imports bind anywhere in ``text``."""
    return frozenset(
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(parse_python(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    )


def _function(text: str, name: str) -> Function | None:
    return next((s.node for s in scopes_of(parse_python(text)) if s.name == name), None)


def _visible(template: Template, modules: frozenset[str], here: frozenset[str]) -> bool:
    """Return whether the other file imports the API names that the fast side uses."""
    return names_in(*template.after) & modules <= here


def _rewritten(text: str, function: Function, template: Template, places: list[Occurrence]) -> str:
    taken = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    taken |= {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    lines: dict[int, list[str]] = {}  # what stands in the place of a line
    dropped: set[int] = set()
    source = split_lines(text)
    for place in places:
        names = {n: _free_name(n, taken) for n in template.fresh}
        last = place.statements[-1]
        indent = source.texts[last.lineno - 1][: last.col_offset]
        new = [ast.unparse(_Filler(place.holes, names).visit(copy.deepcopy(s))) for s in template.after]
        for statement in place.statements:
            dropped |= set(range(statement.lineno - 1, statement.end_lineno or statement.lineno))
        lines[last.lineno - 1] = [indent + line for code in new for line in code.split("\n")] or [
            indent + "pass"
        ]
    parts: list[str] = []
    for number, (body, end) in enumerate(zip(source.texts, source.ends, strict=True)):
        replaced = lines.get(number)
        if replaced is not None:
            parts.append(source.newline.join(replaced) + end)
        elif number not in dropped:
            parts.append(body + end)
    return "".join(parts)


class _Filler(ast.NodeTransformer):
    def __init__(self, holes: dict[str, ast.expr], names: dict[str, str]) -> None:
        self._holes, self._names = holes, names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._holes:
            filled = copy.deepcopy(self._holes[node.id])
            if isinstance(filled, (ast.Name, ast.Subscript, ast.Attribute)):
                filled.ctx = node.ctx
            return filled
        return ast.Name(self._names.get(node.id, node.id), node.ctx)


def _free_name(name: str, taken: set[str]) -> str:
    free = name
    while free in taken:
        free += "_"
    taken.add(free)
    return free


def _without_unused_buffers(text: str, kernel: str) -> str:
    """Drop declarations of buffers that the kernel no longer uses."""
    function = _function(text, kernel)
    if function is None:
        return text
    source = split_lines(text)
    gone: set[int] = set()
    names = [n.id for n in ast.walk(function) if isinstance(n, ast.Name)]
    for name, statement in declarations(function).items():
        if names.count(name) == 1:
            gone |= set(range(statement.lineno - 1, statement.end_lineno or statement.lineno))
    kept = (b + e for k, (b, e) in enumerate(zip(source.texts, source.ends, strict=True)) if k not in gone)
    return "".join(kept)
