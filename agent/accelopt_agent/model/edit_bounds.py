"""Limits what a model may change: what the entry reaches, but neither its signature nor the problem nor imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from accelopt_agent.syntax.module_parts import ModuleParts, read_parts, same_code
from accelopt_profiling.problems.catalogue import layout_of
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.source_text import syntax_of

#: The functions by which a kernel file holds its own problem, per kind, and the values that may belong to it.
_PROBLEM_VALUES = frozenset({"tolerance", "shapes", "entry", "keywords", "grid", "backward"})
_TESTS = ("test_", "bench", "main")

#: What may be imported anew, besides what the file imports from already.
_IMPORTABLE = frozenset(
    {"triton", "neuronxcc", "nki", "math", "functools", "itertools", "typing", "__future__"}
)
#: Built-in functions that a decorator or a constant may call.
_CALLABLE = frozenset(
    {"range", "len", "int", "float", "bool", "str", "min", "max", "list", "dict", "tuple", "set", "sorted", "zip",
     "enumerate", "round", "abs", "sum", "reversed", "map", "filter"}
)  # fmt: skip


@dataclass(frozen=True)
class Bounds:
    """``entries`` are the names of a file that the problem calls, ``problem`` those that make up the problem."""

    entries: frozenset[str]
    problem: frozenset[str]


def bounds_of(
    text: str, kernel: str, ref: ProblemRef | None = None, problem_texts: Iterable[str] = ()
) -> Bounds:
    """Return the bounds of a rewrite of ``text`` that begins with ``kernel``.

    ``ref`` is its problem, ``problem_texts`` the problem's files; none where the file holds it itself.

    The entries are what the problem names, as far as that leads to the kernel; where it names nothing, the definitions
    that lead to the kernel and that nobody else of the file uses; at last the kernel itself.
    """
    parts = read_parts(text)
    own = kernel.partition("#")[0].partition(".")[0]
    leading = parts.leading_to(own)
    problem = frozenset[str]()
    if ref is not None and ref.path is None:
        values = frozenset(n for n in _PROBLEM_VALUES if parts.is_value(n))
        problem = frozenset(layout_of(ref).names) & parts.definitions.keys() | values
    entry_names = {ref.entry.partition(".")[0]} if ref is not None and ref.entry else set[str]()
    if not entry_names and ref is not None:
        entry_names = {entry} if (entry := layout_of(ref).entry) else _named_in(problem_texts)
    entries = entry_names & leading
    if not entries:
        hosts = {n for n in leading - problem - {own} if not n.startswith(_TESTS)}
        used = {u for n in hosts for u in parts.uses(n) if u != n}
        entries = {n for n in hosts if n not in used} or {own}
    return Bounds(frozenset(entries), problem)


def beyond_bounds(bounds: Bounds, base_text: str, text: str) -> str | None:
    """Describe in one line how ``text`` changes what may not be changed of ``base_text``; None where it does not.

    Raises:
        SyntaxError: ``text`` does not parse.
    """
    base, new = read_parts(base_text), read_parts(text)
    return (
        _entry_change(bounds, base, new)
        or _fixed_change(bounds, base, new)
        or _lost_name(bounds, base, new)
        or _import_change(base, new)
    )


def fixed_lines(bounds: Bounds, text: str) -> dict[int, str]:
    """Map the lines (1-based) that may not change to what they belong to, in words."""
    parts, reasons = read_parts(text), dict[int, str]()
    for name in _fixed_names(bounds, parts):
        of_problem = name in parts.reached(bounds.problem)
        why = f"{name} is the problem's own code" if of_problem else f"the problem does not run {name}"
        reasons.update(dict.fromkeys(_lines_of(parts, name), why))
    for statement in parts.statements:
        lines = range(statement.lineno, statement.lineno + 1)
        reasons.update(dict.fromkeys(lines, "it is run when the file is imported"))
    return reasons


def lines_not_run(bounds: Bounds, text: str) -> frozenset[int]:
    """Return the lines (1-based) of functions and classes that neither the problem nor its entries reach."""
    parts = read_parts(text)
    run = parts.reached(bounds.problem | bounds.entries)
    idle = [n for n in parts.definitions if n not in run and not parts.is_value(n)]
    return frozenset(line for name in idle for line in _lines_of(parts, name))


def _lines_of(parts: ModuleParts, name: str) -> Iterator[int]:
    for node in parts.definitions[name]:
        first = min([d.lineno for d in getattr(node, "decorator_list", [])], default=node.lineno)
        yield from range(first, (node.end_lineno or node.lineno) + 1)


def _named_in(texts: Iterable[str]) -> set[str]:
    """Return every name and string in the problem's files: what they may call of the kernel file."""
    names = set[str]()
    for text in texts:
        try:
            tree = syntax_of(text)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.add(node.value.partition(".")[0])
            elif isinstance(node, ast.ImportFrom):
                names.update(alias.name for alias in node.names)
    return names


def _fixed_names(bounds: Bounds, parts: ModuleParts) -> list[str]:
    """Return the definitions that may not change: the problem's with what only it or it too uses, and whatever the
    entries do not reach."""
    of_problem = parts.reached(bounds.problem, but=bounds.entries)
    reached = parts.reached(bounds.entries)
    return [n for n in parts.definitions if n not in bounds.entries and (n in of_problem or n not in reached)]


def _entry_change(bounds: Bounds, base: ModuleParts, new: ModuleParts) -> str | None:
    for name in sorted(bounds.entries & base.definitions.keys()):
        if name not in new.definitions:
            return f"{name}, which the problem calls, is gone"
        if base.signature(name) != new.signature(name):
            return f"the signature of {name}, which the problem calls, changed"
    return None


def _fixed_change(bounds: Bounds, base: ModuleParts, new: ModuleParts) -> str | None:
    for name in _fixed_names(bounds, base):
        if name in new.definitions and same_code(base.definitions[name], new.definitions[name]):
            continue
        if name in base.reached(bounds.problem, but=bounds.entries):
            return f"the problem's own code changed: {name}"
        return f"{name} changed, which the problem does not run, so that no check covers it"
    return None


def _lost_name(bounds: Bounds, base: ModuleParts, new: ModuleParts) -> str | None:
    """Report what code that stays as it is uses and no longer finds as it was."""
    used = {u for n in _fixed_names(bounds, base) for u in base.uses(n)}
    used |= {u for s in base.statements for u in base.names_in(s)}
    for name in sorted(used & base.bound):
        if name not in new.bound:
            return f"{name} is gone, which other code of the file uses"
        if name in base.definitions and base.signature(name) != new.signature(name):
            return f"{name} changed its parameters or its value, and other code of the file uses it"
    return None


def _import_change(base: ModuleParts, new: ModuleParts) -> str | None:
    """Report what the new text would do when it is imported and the base does not."""
    if [ast.dump(s) for s in base.statements] != [ast.dump(s) for s in new.statements]:
        return "what happens when the file is imported changed"
    roots = _IMPORTABLE | {name.partition(".")[0] for name in base.imported}
    for module in sorted(new.imported - base.imported):
        if module.partition(".")[0] not in roots:
            return f"{module} is imported, which the file does not use"
    callable_names = _CALLABLE | {
        alias for alias, module in new.aliases.items() if module.partition(".")[0] in _IMPORTABLE
    }
    for name, nodes in new.definitions.items():
        if name in base.definitions and same_code(base.definitions[name], nodes):
            continue
        for node in nodes:
            if isinstance(node, ast.ClassDef) and name not in base.definitions:
                return f"{name} is a new class; only functions and constants may be added"
            base_expressions = {
                ast.dump(e) for old in base.definitions.get(name, ()) for e in _run_at_import(old)
            }
            for expression in _run_at_import(node):
                called = _foreign_call(expression, callable_names)
                if called is not None and ast.dump(expression) not in base_expressions:
                    return f"{called} would be called when the file is imported"
    return None


def _run_at_import(node: ast.stmt) -> list[ast.expr]:
    """Return the expressions of a definition that are evaluated on import: decorators, defaults, values."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
    if isinstance(node, ast.ClassDef):
        inner = [e for child in node.body for e in _run_at_import(child)]
        return [*node.decorator_list, *node.bases, *inner]
    value = getattr(node, "value", None)
    return [value] if isinstance(value, ast.expr) else []


def _foreign_call(expression: ast.expr, allowed: Iterable[str]) -> str | None:
    """Return what of ``expression`` calls something else than ``allowed`` names. Lambdas are not run."""
    waiting: list[ast.AST] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            root: ast.AST = node.func
            while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
                root = root.func if isinstance(root, ast.Call) else root.value
            if not (isinstance(root, ast.Name) and root.id in allowed):
                return ast.unparse(node.func)
        waiting += ast.iter_child_nodes(node)
    return None
