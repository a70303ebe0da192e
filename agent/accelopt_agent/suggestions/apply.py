"""Computes the edits that bring a suggestion into the current text, which may have changed since it was made.

A three-way merge by syntax: each changed region belongs to a scope (the kernel, a function that launches it, or the
module), the scope is located by its name in the current text, and its changed lines must still be unchanged there.
"""

from __future__ import annotations

import ast
import difflib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_agent.suggestions.text_edit import ApplyRefusal, TextEdit, apply_to_text
from accelopt_agent.syntax.lines import Lines, split_lines
from accelopt_agent.syntax.module_parts import read_parts
from accelopt_agent.syntax.scopes import Scope, scope_named, scopes_of, statement_spans
from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.source_text import syntax_of


class _RefusalError(Exception):
    pass


@dataclass(frozen=True)
class _Hunk:
    """Lines ``start`` to ``end`` (0-based, exclusive) become ``new``."""

    start: int
    end: int
    new: tuple[str, ...]


def edits_for(current_text: str, suggestion: Suggestion) -> list[TextEdit] | ApplyRefusal:
    """Compute the smallest line edits that turn the kernel in ``current_text`` into the suggested one.

    Other code may have changed and the kernel may have moved up or down; line ends and a missing final newline stay.
    Refused, with the reason, where the kernel or a touched launch has changed.
    """
    try:
        kernel = _same_kernel(current_text, suggestion)
        edits = _merge(current_text, suggestion, kernel)
        _verify(apply_to_text(current_text, edits), current_text, suggestion)
    except _RefusalError as refused:
        return ApplyRefusal(str(refused))
    return edits


def holds(text: str, base: str, target: str) -> bool:
    """Return whether every function and named value that differs between ``base`` and ``target`` reads in ``text`` as
    in ``target``."""
    try:
        now, old, new = (_bodies(source) | _values(source) for source in (text, base, target))
    except SyntaxError:
        return False
    changed = {name for name, _ in old.items() ^ new.items()}
    return bool(changed) and all(now.get(name) == new.get(name) for name in changed)


def _same_kernel(text: str, suggestion: Suggestion) -> Kernel:
    source = find_kernels(text)
    if source.syntax_error is not None:
        raise _RefusalError(
            "The file does not parse at the moment; repair it and apply the suggestion again."
        )
    bare = suggestion.kernel.partition("#")[0]
    same_name = [k for k in source.kernels if k.name.partition("#")[0] == bare]
    if not same_name:
        raise _RefusalError(f"The kernel {suggestion.kernel} is no longer in the file.")
    unchanged = [k for k in same_name if k.content_hash == suggestion.base_hash]
    if not unchanged:
        raise _RefusalError(
            f"{suggestion.kernel} has changed since the suggestion was found; save it and optimize again."
        )
    exact = [k for k in unchanged if k.name == suggestion.kernel]
    if not exact and len(unchanged) > 1:
        raise _RefusalError(f"Several kernels are called {bare} now; rename one and optimize again.")
    return (exact or unchanged)[0]


def _merge(current_text: str, suggestion: Suggestion, kernel: Kernel) -> list[TextEdit]:
    base, fast, now = (split_lines(t) for t in (suggestion.base_text, suggestion.text, current_text))
    base_tree, now_tree = syntax_of(suggestion.base_text), syntax_of(current_text)
    base_scopes, now_scopes = scopes_of(base_tree), scopes_of(now_tree)
    base_line = next(
        (k.line for k in find_kernels(suggestion.base_text).kernels if k.name == suggestion.kernel), 0
    )
    spans = statement_spans(base_tree)
    hunks: list[_Hunk] = []
    for hunk in _hunks(base.texts, fast.texts):
        scope = _scope_of(hunk, base_scopes)
        if scope is None:
            target: Scope | None = None
        elif scope.line == base_line:
            target = next(s for s in now_scopes if s.line == kernel.line)
        else:
            target = scope_named(now_scopes, scope.name)
            if target is None:
                raise _RefusalError(
                    f"{scope.name}, which the suggestion changes too, is no longer in the file."
                )
        hunks += _move(hunk, base, now=now, scope=scope, target=target, spans=spans)
    return [_as_edit(h, now) for h in hunks]


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[_Hunk]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            yield _Hunk(i1, i2, tuple(new[j1:j2]))


def _scope_of(hunk: _Hunk, scopes: Sequence[Scope]) -> Scope | None:
    """Return the innermost function that holds the whole hunk.

    None for the module. An insertion belongs where its neighbours on both sides do.
    """
    first, last = (hunk.start - 1, hunk.start) if hunk.start == hunk.end else (hunk.start, hunk.end - 1)
    holding = [s for s in scopes if s.start <= first and last < s.end]
    return max(holding, key=lambda s: s.start, default=None)


def _move(
    hunk: _Hunk,
    base: Lines,
    now: Lines,
    scope: Scope | None,
    target: Scope | None,
    spans: Sequence[tuple[int, int]],
) -> list[_Hunk]:
    """Translate ``hunk`` to the lines of the current text.

    No hunk where the text has it already (an import).

    The statements it touches must be in the current text line for line, so that an edited launch is not overwritten.
    Comments and blank lines that were added between them stay.
    """
    place = _places(base, now, scope, target)
    if hunk.start == hunk.end:
        return _move_insertion(hunk, now, scope=scope, place=place, spans=spans)
    touched = range(*_widened(hunk, spans))
    if any(line not in place and not _says_nothing(base.texts[line]) for line in touched):
        raise _RefusalError(_changed(scope))
    for start, end in spans:
        if start < hunk.end and hunk.start < end and not _adjacent([place.get(k) for k in range(start, end)]):
            raise _RefusalError(_changed(scope))
    positions = [place[line] for line in range(hunk.start, hunk.end) if line in place]
    between = range(positions[0], positions[-1] + 1) if positions else range(0)
    if not positions or any(k not in positions and not _says_nothing(now.texts[k]) for k in between):
        raise _RefusalError(_changed(scope))
    runs = [(k, k + 1) for k in positions]
    joined = [runs[0]]
    for start, end in runs[1:]:
        joined[-1:] = [(joined[-1][0], end)] if joined[-1][1] == start else [joined[-1], (start, end)]
    return [_Hunk(*joined[0], hunk.new), *(_Hunk(start, end, ()) for start, end in joined[1:])]


def _places(base: Lines, now: Lines, scope: Scope | None, target: Scope | None) -> dict[int, int]:
    """Map each unchanged line of ``scope`` in the base text to its line in the current text."""
    b0, b1 = (scope.start, scope.end) if scope else (0, len(base.texts))
    n0, n1 = (target.start, target.end) if target else (0, len(now.texts))
    matcher = difflib.SequenceMatcher(None, base.texts[b0:b1], now.texts[n0:n1], autojunk=False)
    return {b0 + m.a + k: n0 + m.b + k for m in matcher.get_matching_blocks() for k in range(m.size)}


def _move_insertion(
    hunk: _Hunk, now: Lines, scope: Scope | None, place: dict[int, int], spans: Sequence[tuple[int, int]]
) -> list[_Hunk]:
    if scope is None and _only_imports(hunk.new) and all(not n.strip() or n in now.texts for n in hunk.new):
        return []
    if hunk.start == 0:
        return [_Hunk(0, 0, hunk.new)]
    holding = [place.get(k) for start, end in spans if start < hunk.start < end for k in range(start, end)]
    before, after = place.get(hunk.start - 1), place.get(hunk.start)
    at = before + 1 if before is not None else after
    if at is None or not _adjacent(holding):
        raise _RefusalError(_changed(scope))
    return [_Hunk(at, at, hunk.new)]


def _adjacent(lines: Sequence[int | None]) -> bool:
    return all(a is not None and b == a + 1 for a, b in itertools.pairwise(lines))


def _says_nothing(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _widened(hunk: _Hunk, spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the hunk's lines together with the rest of every simple statement they touch."""
    start, end = hunk.start, hunk.end
    for first, last in spans:
        if first < hunk.end and hunk.start < last:
            start, end = min(start, first), max(end, last)
    return start, end


def _only_imports(lines: Sequence[str]) -> bool:
    return all(not line.strip() or line.startswith(("import ", "from ")) for line in lines)


def _changed(scope: Scope | None) -> str:
    where = scope.name if scope else "the file outside its functions"
    return (
        f"The lines to be changed in {where} are no longer what they were; save the file and optimize again."
    )


def _as_edit(hunk: _Hunk, now: Lines) -> TextEdit:
    newline, count = now.newline, len(now.texts)
    if hunk.end < count:
        return TextEdit(
            hunk.start, 0, end_line=hunk.end, end_col=0, new_text="".join(line + newline for line in hunk.new)
        )
    last = len(now.texts[-1])
    if hunk.start == count:
        return TextEdit(
            count - 1,
            last,
            end_line=count - 1,
            end_col=last,
            new_text="".join(newline + line for line in hunk.new),
        )
    if not hunk.new and hunk.start > 0:
        return TextEdit(
            hunk.start - 1, len(now.texts[hunk.start - 1]), end_line=count - 1, end_col=last, new_text=""
        )
    return TextEdit(hunk.start, 0, end_line=count - 1, end_col=last, new_text=newline.join(hunk.new))


def _verify(result: str, current_text: str, suggestion: Suggestion) -> None:
    """The merged text holds the suggested kernel. Functions the suggestion leaves alone are untouched."""
    goal, base, now = (_bodies(t) for t in (suggestion.text, suggestion.base_text, current_text))
    try:
        merged = _bodies(result)
    except SyntaxError:
        raise _RefusalError(
            "The file has changed so much that the suggestion no longer fits; optimize again."
        ) from None
    if not suggestion.fast_hashes <= {k.content_hash for k in find_kernels(result).kernels}:
        raise _RefusalError(f"{suggestion.kernel} no longer fits the suggestion; save and optimize again.")
    touched = {name for name, _ in goal.items() ^ base.items()}
    for name, dump in now.items():
        if name not in touched and merged.get(name) != dump:
            raise _RefusalError(f"The suggestion would change {name} by accident; optimize the file again.")


def _bodies(text: str) -> dict[str, str]:
    """Return the functions of ``text`` by name, as comparable syntax trees."""
    return {s.name: ast.dump(s.node) for s in scopes_of(syntax_of(text))}


def _values(text: str) -> dict[str, str]:
    """Return the named values of the top level of ``text``, as comparable syntax trees."""
    definitions = read_parts(text).definitions.items()
    return {
        name: ast.dump(nodes[-1]) for name, nodes in definitions
        if isinstance(nodes[-1], (ast.Assign, ast.AnnAssign))
    }  # fmt: skip
