"""Moves a file of Beta 1 to today's NKI: imports, decorators, loops, and the statements of its kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelopt_agent.migration.kernel_translation import KernelTranslation
from accelopt_agent.migration.known_facts import FactTable
from accelopt_agent.migration.spelling import TABLE, ModuleNames, UntranslatableError
from accelopt_profiling.source_text import parse_python

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
    """The text in today's NKI; ``unmoved`` lines are marked in it by a comment with the reason."""

    text: str
    unmoved: list[UnmovedLine]


def is_beta1(text: str) -> bool:
    """Return True for a text that imports Beta 1."""
    return _BETA1 in text


def migrate_text(text: str, facts: Iterable[ExpressionFact]) -> FileMigration:
    """Translate ``text``, of which ``facts`` say what its expressions were when it ran.

    Raises:
        SyntaxError: it does not parse.
    """
    tree = parse_python(text)
    table = FactTable(facts)
    edits: list[tuple[int, int, list[str]]] = []
    unmoved: list[UnmovedLine] = []
    names = ModuleNames(_imported(tree))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and (lines := _import(node)) is not None:
            edits.append((node.lineno, node.end_lineno or node.lineno, lines))
    for function in functions:
        edits += _decorators(function, names)
        if not table.any_in(function):
            continue  # host code, or a function that did not run
        translation = KernelTranslation(function, table, names)
        for statement in _simple(function.body):
            try:
                lines = translation.translate(statement)
            except UntranslatableError as why:
                unmoved.append(UnmovedLine(statement.lineno, str(why)))
                original = text.splitlines()[statement.lineno - 1 : statement.end_lineno]
                indent = len(original[0]) - len(original[0].lstrip())
                lines = [f"{_MARK} {why}", *(line[indent:] for line in original)]
            if lines is not None:
                edits.append((statement.lineno, statement.end_lineno or statement.lineno, lines))
        edits += _loops(function, translation)
    moved = _apply(text, edits)
    isa = next((name for name, module in names.names.items() if module == f"{_BETA1}.isa"), "nisa")
    bound = {
        a.asname or a.name for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names
    }
    if f"{isa}." in moved and isa not in bound:
        moved = _with_import(moved, f"import nki.isa as {isa}")
    return FileMigration(moved, sorted(unmoved, key=lambda u: u.line))


def _imported(tree: ast.Module) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("neuronxcc"):
                    names[alias.asname or "neuronxcc"] = alias.name if alias.asname else "neuronxcc"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neuronxcc"):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


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
    gone = TABLE["gone"].get(module, [])
    kept = [a for a in node.names if a.name not in gone and a.name != "compiler"]
    if module == "neuronxcc":
        return [f"import nki as {a.asname}" if a.asname not in (None, "nki") else "import nki" for a in kept]
    if not kept:
        return []
    listed = ", ".join(f"{a.name} as {a.asname}" if a.asname else a.name for a in kept)
    return [f"from {module.replace('neuronxcc.nki', 'nki')} import {listed}"]


def _decorators(function: ast.FunctionDef, names: ModuleNames) -> Iterator[tuple[int, int, list[str]]]:
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        dotted = names.dotted(called)
        if not dotted.startswith(_BETA1):
            continue
        nki = next((n for n, module in names.names.items() if module == _BETA1), "nki")
        last = dotted.rpartition(".")[2]
        kept = f"@{ast.unparse(called)}" if last == "jit" else f"@{nki}.jit"
        keep = last in ("jit", "trace", "baremetal", "benchmark", "profile")
        yield decorator.lineno, decorator.end_lineno or decorator.lineno, [kept] if keep else []


def _simple(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements without a body, also inside loops and conditions, but not those of inner functions."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        inner = [getattr(node, name) for name in ("body", "orelse", "finalbody") if getattr(node, name, None)]
        if not inner and not isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        for part in inner:
            yield from _simple(part)


def _loops(function: ast.FunctionDef, translation: KernelTranslation) -> Iterator[tuple[int, int, list[str]]]:
    for node in ast.walk(function):
        if not isinstance(node, ast.For):
            continue
        head = f"for {ast.unparse(node.target)} in {translation.value(node.iter)}:"
        before = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}:"
        if head != before and node.body[0].lineno > (node.iter.end_lineno or 0):
            yield node.lineno, node.iter.end_lineno or node.lineno, [head]


def _apply(text: str, edits: list[tuple[int, int, list[str]]]) -> str:
    """Replace lines, each with the indentation that the first of them had. A body that loses all gets ``pass``."""
    lines = text.splitlines()
    taken: set[int] = set()
    for first, last, new in sorted(edits, key=lambda e: -e[0]):
        if first in taken:
            continue
        taken.add(first)
        old = lines[first - 1]
        indent = old[: len(old) - len(old.lstrip())]
        comment = _trailing_comment(lines[last - 1]) if first == last and new else ""
        made = [indent + line for line in new]
        if comment and made:
            made[-1] += comment
        lines[first - 1 : last] = made
    return _with_bodies("\n".join(lines) + "\n")


def _trailing_comment(line: str) -> str:
    at = line.find("  #")
    return (
        line[at:] if at >= 0 and line.count('"', 0, at) % 2 == 0 and line.count("'", 0, at) % 2 == 0 else ""
    )


def _with_bodies(text: str) -> str:
    """Put ``pass`` into loops that lost all their statements."""
    lines = text.splitlines()
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if not line.strip().startswith(("for ", "if ", "else:")) or not line.rstrip().endswith(":"):
            continue
        indent = len(line) - len(line.lstrip())
        following = next((n for n in lines[number + 1 :] if n.strip() and not n.strip().startswith("#")), "")
        if not following or len(following) - len(following.lstrip()) <= indent:
            lines.insert(number + 1, " " * (indent + 4) + "pass")
    return "\n".join(lines) + "\n"


def _with_import(text: str, line: str) -> str:
    lines = text.splitlines()
    at = next((n for n, old in enumerate(lines) if old.startswith(("import nki", "from nki"))), 0)
    return "\n".join([*lines[: at + 1], line, *lines[at + 1 :]]) + "\n"
