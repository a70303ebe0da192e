"""Carries the edit of a pair over to another kernel: a three-way merge over kernel, helpers, launch and module.

The base is the slow side as the other kernel would call it, theirs is the fast side, ours the other kernel. The result
follows the lines of the fast side; a line that the edit left alone, changed or moved is taken from the other kernel,
and what only that has stays where it was.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from accelopt_agent.syntax.token_lines import code_lines, read_tokens
from accelopt_agent.transfer.kernel_match import KernelMatch, match_kernels
from accelopt_agent.transfer.line_merge import MergedBlock, merge_block
from accelopt_agent.transfer.module_merge import merge_file
from accelopt_agent.transfer.pair_edit import PairEdit, read_edit
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.source_text import parse_python

#: An edit fits where at least this share of the lines that it changes stand in the other kernel.
LEAST_FIT = 0.6


@dataclass(frozen=True)
class TransferredEdit:
    """``text`` is the other file after the edit. ``fit`` is the share (0..1) of the lines which the edit changes that
    were there; ``whole`` tells that all of its parts were merged."""

    text: str
    fit: float
    whole: bool


def transfer(
    slow_text: str, fast_text: str, pair_kernel: str, text: str, kernel: str
) -> TransferredEdit | None:
    """Apply the edit of a pair to ``kernel`` in ``text``: all of it, or else those parts that fit wholly; None where
    none fits.

    The result is not known to be right: the gate decides that. It parses, holds the kernel, and uses no name that
    nothing binds.
    """
    try:
        edit, target = read_edit(slow_text, fast_text), read_tokens(text)
        touched = {b.name for b in edit.blocks if any(e.hunk for e in b.lines)}
        match = match_kernels(edit.slow, pair_kernel, target, kernel, touched)
    except SyntaxError:
        return None
    if match is None or not edit.hunks:
        return None
    for hunks in _attempts(edit, match):
        merged = _merged(edit, match, hunks)
        fit = sum(b.placed for b in merged) / max(1e-9, sum(b.wanted for b in merged))
        if fit < LEAST_FIT or not any(b.changed for b in merged):
            continue
        result = merge_file(edit, match, target, merged, hunks)
        if result is not None and result != text and _is_sound(result, text, kernel):
            return TransferredEdit(result, min(1.0, fit), len(hunks) == len(edit.hunks))
    return None


def reproduces(slow_text: str, fast_text: str, kernel: str) -> bool:
    """Return whether a pair's own edit makes its fast side of its slow side, token for token."""
    own = transfer(slow_text, fast_text, kernel, slow_text, kernel)
    if own is None:
        return False
    made, fast = (code_lines(read_tokens(text).lines) for text in (own.text, fast_text))
    return [(line.depth, line.key) for line in made] == [(line.depth, line.key) for line in fast]


def _attempts(edit: PairEdit, match: KernelMatch) -> Iterator[frozenset[int]]:
    """Yield all hunks, then those whose every line stands in the other kernel."""
    whole = frozenset(edit.hunks)
    yield whole
    fitting = frozenset(hunk for hunk in edit.hunks if _fits(_merged(edit, match, frozenset({hunk}))))
    if fitting and fitting != whole:
        yield fitting
    if len(fitting) > 1:
        for hunk in sorted(fitting):
            yield frozenset({hunk})


def _fits(merged: list[MergedBlock]) -> bool:
    return all(b.placed >= b.wanted for b in merged)


def _merged(edit: PairEdit, match: KernelMatch, hunks: frozenset[int]) -> list[MergedBlock]:
    return [merge_block(block, edit, match, hunks) for block in edit.blocks]


def _repeats(tree: ast.AST) -> bool:
    """Return whether a call names a keyword twice, or a function a parameter, which the parser lets pass."""
    named = [[k.arg for k in n.keywords if k.arg] for n in ast.walk(tree) if isinstance(n, ast.Call)]
    named += [
        [a.arg for a in ast.walk(n.args) if isinstance(a, ast.arg)]
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef)
    ]
    return any(len(names) != len(set(names)) for names in named)


def _is_sound(result: str, before: str, kernel: str) -> bool:
    try:
        if _repeats(parse_python(result)):
            return False
        unbound = _unbound(result) - _unbound(before)
    except SyntaxError:
        return False
    dialects = {k.name: k.dialect for k in find_kernels(before).kernels}
    return (
        not unbound
        and {k.name: k.dialect for k in find_kernels(result).kernels}.get(kernel) == dialects[kernel]
    )


def _unbound(text: str) -> set[tuple[str, str]]:
    """Return the names that a function reads and nothing binds, each with its function."""
    tree = parse_python(text)
    outside = set(dir(builtins)) | {"__file__", "__name__"}
    for statement in tree.body:
        outside |= _bound(statement, inside=not isinstance(statement, (ast.FunctionDef, ast.ClassDef)))
    found: set[tuple[str, str]] = set()
    for statement in tree.body:
        bound = outside | _bound(statement, inside=True)
        name = getattr(statement, "name", "")
        found |= {
            (name, n.id)
            for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in bound
        }
    return found


def _bound(statement: ast.stmt, *, inside: bool) -> set[str]:
    names: set[str] = set()
    nodes = ast.walk(statement) if inside else iter([statement])
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names
