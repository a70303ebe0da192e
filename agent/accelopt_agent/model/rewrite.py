"""Reads an answer that is code, a whole file or some of its definitions, and puts it in the place of the base's."""

from __future__ import annotations

import ast
import re

from accelopt_agent.model.edit_bounds import Bounds
from accelopt_agent.model.edits import InvalidAnswerError
from accelopt_agent.syntax.lines import split_lines
from accelopt_agent.syntax.module_parts import ModuleParts, name_of, read_parts
from accelopt_profiling.source_text import syntax_of

_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[\w+ \t-]*\n(.*?)^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)


def apply_code(base_text: str, answer: str, bounds: Bounds) -> str:
    """Return ``base_text`` with the functions, constants and imports of ``answer`` in the place of those of the same
    names; new ones come before what uses them. An answer with everything that may not change is the whole file.
    Functions that nothing uses any more are left out.

    Raises:
        InvalidAnswerError: the answer holds no Python code with a definition.
    """
    code = _code(answer)
    base, new = read_parts(base_text), read_parts(code)
    if set(base.definitions) <= set(new.definitions) and base.aliases.keys() <= new.aliases.keys():
        return code
    return _without_unused(_merged(base_text, code), base_text, bounds)


def fenced_blocks(answer: str) -> list[str]:
    """Return what stands between fences, the longest first."""
    return sorted((match[2] for match in _FENCED.finditer(answer)), key=len, reverse=True)


def _code(answer: str) -> str:
    """Return the answer's largest block that is Python and defines something.

    The whole answer where it has none.
    """
    blocks = fenced_blocks(answer)
    fault: SyntaxError | None = None
    for text in blocks or [answer]:
        try:
            if read_parts(text).definitions:
                return text if text.endswith("\n") else f"{text}\n"
        except SyntaxError as error:
            fault = fault or error
        except (ValueError, RecursionError, MemoryError):
            continue
    if fault is not None and blocks:
        raise InvalidAnswerError(f"its code does not parse ({fault})")
    raise InvalidAnswerError("the answer holds no edits and no code")


def _spans(text: str) -> dict[str, tuple[int, int]]:
    """Map the definitions of the top level to their lines (0-based, exclusive), decorators included."""
    spans: dict[str, tuple[int, int]] = {}
    for statement in syntax_of(text).body:
        name = name_of(statement)
        if name is not None:
            first = min(
                [d.lineno for d in getattr(statement, "decorator_list", [])], default=statement.lineno
            )
            spans[name] = (first - 1, statement.end_lineno or statement.lineno)
    return spans


def _merged(base_text: str, code: str) -> str:
    lines, spans = list(split_lines(base_text).texts), _spans(base_text)
    answered, places = split_lines(code).texts, _spans(code)
    parts = read_parts(code)
    base_imports = {ast.unparse(node) for node in read_parts(base_text).imports}
    imports = [ast.unparse(n) for n in parts.imports if ast.unparse(n) not in base_imports]
    edits: list[tuple[int, int, list[str]]] = []
    added: list[str] = []
    for name, (first, end) in places.items():
        body = list(answered[first:end])
        if name in spans:
            start, stop = spans[name]
            if lines[start:stop] != body:
                edits.append((start, stop, body))
        else:
            added += ["", *body] if len(body) == 1 else ["", "", *body]
    if added:
        at = min((start for start, _, _ in edits), default=_after_imports(base_text))
        edits.append((at, at, [*added[1 if at else 0 :], "", ""]))
    if imports:
        at = _after_imports(base_text)
        edits.append((at, at, imports))
    for start, stop, body in sorted(edits, key=lambda e: (e[0], e[1]), reverse=True):
        lines[start:stop] = body
    return split_lines(base_text).newline.join(lines)


def _after_imports(text: str) -> int:
    """Return the number of lines up to the end of the last import of the top level."""
    body = syntax_of(text).body
    ends = [n.end_lineno or n.lineno for n in body if isinstance(n, (ast.Import, ast.ImportFrom))]
    return max(ends, default=0)


def _without_unused(text: str, base_text: str, bounds: Bounds) -> str:
    """Remove the functions of the base that its entries used and nothing of ``text`` does."""
    base, new = read_parts(base_text), read_parts(text)
    before = base.reached(bounds.entries)
    gone = {n for n in before - _still_used(base, new, bounds) if _is_function(new, n)}
    lines, spans = list(split_lines(text).texts), _spans(text)
    for start, end in sorted((spans[n] for n in gone if n in spans), reverse=True):
        while end < len(lines) and not lines[end].strip():
            end += 1
        del lines[start:end]
    return split_lines(text).newline.join(lines)


def _still_used(base: ModuleParts, new: ModuleParts, bounds: Bounds) -> set[str]:
    reached = base.reached(bounds.entries)
    roots = {n for n in new.definitions if n in bounds.entries or n not in reached}
    roots |= {u for s in new.statements for u in new.names_in(s)}
    added = roots - base.definitions.keys()  # what the answer added counts where something uses it
    return new.reached(roots - added)


def _is_function(parts: ModuleParts, name: str) -> bool:
    return any(
        isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) for n in parts.definitions.get(name, ())
    )
