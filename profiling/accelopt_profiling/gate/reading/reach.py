"""Find what a rewrite changes of a file that the checked calls do not reach."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from accelopt_profiling.gate.reading.facts import StaticFinding, at
from accelopt_profiling.gate.reading.vocabulary import WORDS
from accelopt_profiling.kernels import content_hash
from accelopt_profiling.source_text import syntax_of

_Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def unreached_changes(text: str, original: str, called: Collection[str]) -> Iterator[StaticFinding]:
    """Yield the functions and classes of a module that differ from the original's of their names, and that neither what
    is ``called`` nor the import of the file may reach: whatever a name or a text stands for counts as reached.
    """
    before = {d.name: content_hash(d) for d in syntax_of(original).body if isinstance(d, _Definition)}
    body = syntax_of(text).body
    definitions = {d.name: d for d in body if isinstance(d, _Definition)}
    reached, waiting = set(called), [n for n in body if not isinstance(n, _Definition)]
    waiting += [definitions[name] for name in called if name in definitions]
    while waiting:
        names = _names(waiting.pop()) - reached
        reached |= names
        waiting += [definitions[name] for name in names if name in definitions]
    for name, definition in definitions.items():
        if name in reached or name.startswith(WORDS["not_kernel"]):
            continue
        if before.get(name, "") not in ("", content_hash(definition)):
            message = f"It changes {name}, which nothing that was checked calls."
            yield at(definition, "unreached-change", name, message)


def _names(node: ast.AST) -> set[str]:
    """Return every name, attribute and text in a statement."""
    names: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(name) | ast.Attribute(attr=name) | ast.Constant(str() as name):
                names.add(name)
    return names
