"""Finds the places of a kernel that match the slow side of a template."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from accelopt_agent.transfer.template import Template, is_api, names_in, shape, telling

#: Keyword arguments that name a thing for people and change nothing.
_NAMING = frozenset({"name"})


@dataclass(frozen=True)
class Occurrence:
    """``statements`` of one block that match a template's slow side, and what its holes stand for there."""

    statements: tuple[ast.stmt, ...]
    holes: dict[str, ast.expr] = field(default_factory=dict)


def occurrences(template: Template, function: ast.AST, modules: frozenset[str]) -> list[Occurrence]:
    """Return the places in ``function`` where ``template`` fits, none of which share a statement, in source
    order.

    Other statements may lie between the matched ones if they share no variable with what those assign. Variables
    that the template's fast side no longer assigns must not be used outside the place.
    """
    found: list[Occurrence] = []
    used: set[int] = set()
    for block in _blocks(function):
        statements = telling(block)
        for start in range(len(statements)):
            place = _match_run(template, statements[start:], modules)
            if place is None or any(id(s) in used for s in place.statements):
                continue
            if _lost_values_are_local(template, place, function):
                found.append(place)
                used |= {id(s) for s in place.statements}
    return found


def _blocks(function: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for block in ("body", "orelse"):
            statements = getattr(node, block, None)
            if isinstance(statements, list) and statements and isinstance(statements[0], ast.stmt):
                yield statements


def _match_run(
    template: Template, statements: Sequence[ast.stmt], modules: frozenset[str]
) -> Occurrence | None:
    holes: dict[str, ast.expr] = {}
    matched: list[ast.stmt] = []
    skipped: list[ast.stmt] = []
    for pattern in template.before:
        while True:
            at = len(matched) + len(skipped)
            if at == len(statements):
                return None
            trial = dict(holes)
            if matches(pattern, statements[at], trial, modules):
                holes = trial
                matched.append(statements[at])
                break
            if not matched:
                return None
            skipped.append(statements[at])
    if names_in(*skipped) & {n for s in matched for n in assigned_roots(s)}:
        return None
    return Occurrence(tuple(matched), holes)


def assigned_roots(statement: ast.stmt) -> set[str]:
    """Return the variables that ``statement`` assigns, or assigns parts of."""
    roots = set()
    for node in ast.walk(statement):
        target = node
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            while isinstance(target, (ast.Subscript, ast.Attribute)):
                target = target.value
            roots |= {target.id} if isinstance(target, ast.Name) else set()
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            roots.add(node.id)
    return roots


def _lost_values_are_local(template: Template, place: Occurrence, function: ast.AST) -> bool:
    kept = {n for s in template.after for n in names_in(s)}
    lost: set[str] = set()
    for pattern, statement in zip(template.before, place.statements, strict=True):
        holes_assigned = {n for n in assigned_roots(pattern) if n.startswith("$")}
        if holes_assigned and not holes_assigned & kept:
            lost |= assigned_roots(statement)
    inside = {id(n) for s in place.statements for n in ast.walk(s)}
    return not any(
        isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in lost
        for statement in _simple_statements(function)
        if id(statement) not in inside and not assigned_roots(statement) & lost
        for n in ast.walk(statement)
    )


def _simple_statements(function: ast.AST) -> Iterator[ast.stmt]:
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            yield node


def matches(pattern: ast.AST, node: ast.AST, holes: dict[str, ast.expr], modules: frozenset[str]) -> bool:
    """Return whether ``node`` is ``pattern`` with its holes filled; fills ``holes`` on the way."""
    if isinstance(pattern, ast.Name) and pattern.id.startswith("$"):
        if not isinstance(node, ast.expr) or is_api(node, modules) or isinstance(node, ast.Constant):
            return False
        bound = holes.setdefault(pattern.id, node)
        return bound is node or shape(bound) == shape(node)
    if isinstance(pattern, ast.expr_context):
        return isinstance(node, ast.expr_context)
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Call) and isinstance(node, ast.Call):
        return _calls_match(pattern, node, holes, modules)
    return all(
        _fields_match(getattr(pattern, name), getattr(node, name), holes, modules) for name in pattern._fields
    )


def _calls_match(
    pattern: ast.Call, node: ast.Call, holes: dict[str, ast.expr], modules: frozenset[str]
) -> bool:
    """Keywords match in any order; naming ones, and those that are None on one side and absent on the other, do
    not count."""
    if not matches(pattern.func, node.func, holes, modules):
        return False
    if not _fields_match(pattern.args, node.args, holes, modules):
        return False
    mine, theirs = _keywords(pattern), _keywords(node)
    return mine.keys() == theirs.keys() and all(
        matches(value, theirs[name], holes, modules) for name, value in mine.items()
    )


def _keywords(call: ast.Call) -> dict[str | None, ast.expr]:
    return {
        k.arg: k.value
        for k in call.keywords
        if k.arg not in _NAMING and not (isinstance(k.value, ast.Constant) and k.value.value is None)
    }


def _fields_match(a: object, b: object, holes: dict[str, ast.expr], modules: frozenset[str]) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        if a and isinstance(a[0], ast.stmt):
            a, b = telling(a), telling(b)
        return len(a) == len(b) and all(
            _fields_match(x, y, holes, modules) for x, y in zip(a, b, strict=True)
        )
    if isinstance(a, ast.AST) and isinstance(b, ast.AST):
        return matches(a, b, holes, modules)
    return type(a) is type(b) and a == b
