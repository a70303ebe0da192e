"""Moves a file of Beta 1 to today's NKI: imports, decorators, loops, and the statements of its kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accelopt_agent.migration.kernel_translation import KernelTranslation
from accelopt_agent.migration.known_facts import FactTable
from accelopt_agent.migration.spelling import ModuleNames, UntranslatableError, removed
from accelopt_agent.migration.statement_edits import StatementEdits

if TYPE_CHECKING:
    from accelopt_profiling.nki.tile_facts import ExpressionFact

_MARK = "# not moved:"
_BETA1 = "neuronxcc.nki"


@dataclass(frozen=True)
class UnmovedLine:
    """A 1-based line of the original that has to be moved by hand, and why."""

    line: int
    reason: str


@dataclass(frozen=True)
class FileMigration:
    """The text in today's NKI.

    ``unmoved`` lines are marked in it by a comment with the reason. ``not_run`` are lines of the original that did not
    run in any case, so that nothing is known about what stands for them.
    """

    text: str
    unmoved: list[UnmovedLine]
    not_run: list[int] = field(default_factory=list)


def is_beta1(text: str) -> bool:
    """Return True for a text that imports Beta 1."""
    return _BETA1 in text


def migrate_text(text: str, facts: Iterable[ExpressionFact]) -> FileMigration:
    """Translate ``text``, of which ``facts`` say what its expressions were when it ran.

    Raises:
        SyntaxError: it does not parse.
    """
    edits, table = StatementEdits(text), FactTable(facts)
    names = ModuleNames.of(edits.tree)
    unmoved: list[UnmovedLine] = []
    new_lines: list[str] = []
    not_run: set[int] = set()
    for function in (n for n in ast.walk(edits.tree) if isinstance(n, ast.FunctionDef)):
        for decorator in function.decorator_list:
            if (today := _decorator(decorator, names)) is not None:
                edits.replace_decorator(decorator, today)
        not_run |= _not_run(function, table, names)
        if not table.any_in(function):
            continue  # host code, or a function that did not run
        translation = KernelTranslation(function, table, names)
        for statement in statements_of(function):
            try:
                if isinstance(statement, ast.For):
                    _loop(statement, translation, edits)
                    continue
                lines = translation.translate(statement)
            except UntranslatableError as why:
                unmoved.append(UnmovedLine(statement.lineno, str(why)))
                lines = None if _has_body(statement) else [f"{_MARK} {why}", edits.source(statement)]
            if lines is not None:
                edits.replace(statement, lines)
                new_lines += lines
    isa = names.module(f"{_BETA1}.isa", "")
    needs_isa = not isa and any("nisa." in line for line in new_lines)
    for node in ast.walk(edits.tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and (lines := _import(node)) is not None:
            if needs_isa and node in edits.tree.body:
                lines, needs_isa = [*lines, "import nki.isa as nisa"], False
            edits.replace(node, lines)
    return FileMigration(edits.result(), sorted(unmoved, key=lambda u: u.line), sorted(not_run))


#: Decorators that ``nki.jit`` stands for today.
_DECORATORS = frozenset(("trace", "baremetal", "benchmark", "profile"))
#: What cannot be imported any more, by Beta 1's module.
_GONE = {
    "neuronxcc.nki": _DECORATORS | removed("nki"),
    "neuronxcc.nki.language": removed("nki.language"),
}


def _import(node: ast.Import | ast.ImportFrom) -> list[str] | None:
    """Return today's import, [] for one that is gone."""
    if isinstance(node, ast.Import):
        if not any(a.name.startswith("neuronxcc") for a in node.names):
            return None
        lines = []
        for alias in node.names:
            module = alias.name.replace("neuronxcc.nki", "nki")
            if module != "nki.compiler":
                lines.append(
                    f"import {module}" + (f" as {alias.asname}" if alias.asname not in (None, module) else "")
                )
        return lines
    module = node.module or ""
    if not module.startswith("neuronxcc"):
        return None
    gone = _GONE.get(module, frozenset())
    aliases = [a for a in node.names if a.name not in gone and a.name != "compiler"]
    if module == "neuronxcc":
        return [
            f"import nki as {a.asname}" if a.asname not in (None, "nki") else "import nki" for a in aliases
        ]
    if not aliases:
        return []
    listed = ", ".join(f"{a.name} as {a.asname}" if a.asname else a.name for a in aliases)
    return [f"from {module.replace('neuronxcc.nki', 'nki')} import {listed}"]


def _decorator(decorator: ast.expr, names: ModuleNames) -> str | None:
    """Return today's decorator, "" for one that is gone, None for one that is not NKI's."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    dotted = names.dotted(called)
    if not dotted.startswith(_BETA1):
        return None
    last = dotted.rpartition(".")[2]
    if last == "jit":
        return ast.unparse(called)
    return f"{names.module(_BETA1, 'nki')}.jit" if last in _DECORATORS else ""


def statements_of(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Yield the statements of a function, its loops included, but not imports, nor those of inner functions."""
    waiting: list[ast.AST] = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        if isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        ):
            continue
        if isinstance(node, ast.stmt) and (isinstance(node, ast.For) or not _has_body(node)):
            yield node
        inner = [
            n
            for n in ast.iter_child_nodes(node)
            if isinstance(n, (ast.stmt, ast.ExceptHandler, ast.match_case))
        ]
        waiting += reversed(inner)


#: Their expressions are not recorded.
_UNRECORDED = (
    ast.Lambda,
    ast.JoinedStr,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.FunctionDef,
)


def _not_run(function: ast.FunctionDef, table: FactTable, names: ModuleNames) -> set[int]:
    """Return the lines of a function with a call of NKI's, or in a kernel any expression, that did not run."""
    lines: set[int] = set()
    kernel = table.any_in(function)
    for statement in statements_of(function):
        if isinstance(statement, (ast.Raise, ast.Assert)):
            continue
        waiting: list[ast.AST] = [statement.iter] if isinstance(statement, ast.For) else [statement]
        places: list[ast.AST] = []
        while waiting:
            node = waiting.pop()
            if not isinstance(node, _UNRECORDED):
                places.append(node)
                waiting += ast.iter_child_nodes(node)
        calls = [n for n in places if isinstance(n, ast.Call) and _is_device_function(n.func, names)]
        loads = [n for n in places if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        if any(table.of(c) is None for c in calls) or (
            kernel and loads and not any(table.of(n) is not None for n in places)
        ):
            lines.add(statement.lineno)
    return lines


def _is_device_function(node: ast.expr, names: ModuleNames) -> bool:
    return bool(names.below(node, "language") or names.below(node, "isa"))


def _has_body(node: ast.stmt) -> bool:
    return bool(getattr(node, "body", None) or getattr(node, "cases", None))


def _loop(loop: ast.For, translation: KernelTranslation, edits: StatementEdits) -> None:
    """Replace what a loop runs over."""
    over = translation.loop_range(loop.iter)
    if over != ast.unparse(loop.iter):
        edits.replace_expression(loop.iter, over, loop)
