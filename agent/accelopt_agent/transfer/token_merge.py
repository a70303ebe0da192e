"""Merges three versions of one line: what the edit changed of it, into the line that stands in another kernel."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from accelopt_agent.syntax.token_lines import LogicalLine, Token
from accelopt_agent.transfer.alignment import align_tokens
from accelopt_agent.transfer.renaming import Renaming

_TRAILERS = ("[", "(", ".")
_PAIRS = {")": "(", "]": "[", "}": "{"}


def merge_line(
    slow: LogicalLine,
    fast: LogicalLine,
    target: LogicalLine,
    renaming: Renaming,
    names: Renaming | None = None,
) -> list[Token]:
    """Return ``target`` with the changes from ``slow`` to ``fast``.

    ``renaming`` is that between the slow side and the target; ``names``, by default the same, that of the function in
    which the result stands.
    """
    if slow.key == fast.key:
        return list(target.tokens)
    merged = _merged(slow.tokens, fast.tokens, target.tokens, renaming, names or renaming)
    return merged if balanced(merged) else renamed_line(fast, names or renaming)


def renamed_line(line: LogicalLine, renaming: Renaming) -> list[Token]:
    """Return a line that has no counterpart, as the other kernel would say it."""
    return [token for t in line.tokens for token in renaming.tokens(t)]


def balanced(tokens: Sequence[Token]) -> bool:
    """Return whether every bracket is closed."""
    opened: list[str] = []
    for token in tokens:
        if token.text in _PAIRS.values():
            opened.append(token.text)
        elif token.text in _PAIRS and (not opened or opened.pop() != _PAIRS[token.text]):
            return False
    return not opened


def _merged(
    slow: Sequence[Token], fast: Sequence[Token], target: Sequence[Token], renaming: Renaming, names: Renaming
) -> list[Token]:
    there = dict(align_tokens(slow, target, renaming.single))
    sources: dict[int, int] = {}  # fast to slow
    replaced: dict[int, int] = {}
    matcher = difflib.SequenceMatcher(None, [t.value for t in slow], [t.value for t in fast], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            sources |= dict(zip(range(j1, j2), range(i1, i2), strict=True))
        elif tag == "replace" and i2 - i1 == j2 - j1:
            replaced |= dict(zip(range(j1, j2), range(i1, i2), strict=True))
    alive = {there[i] for i in sources.values() if i in there}
    behind, ahead = _own_tokens(target, set(there.values()), alive)
    merged: list[Token] = []
    own: list[
        Token
    ] = []  # of the target alone, behind the last token; an index or call that is new goes before it
    trailer = False
    for j, token in enumerate(fast):
        i = sources.get(j)
        if i is None:
            trailer = trailer or (bool(own) and token.text in _TRAILERS and j - 1 in sources)
            if not trailer:
                merged, own = merged + own, []
            merged += _new_token(token, slow, target, replaced.get(j), there, names)
        elif i in there:
            merged += [*own, *(target[k] for k in ahead.get(there[i], ())), target[there[i]]]
            own, trailer = [target[k] for k in behind.get(there[i], ())], False
    return merged + own


def _own_tokens(
    target: Sequence[Token], aligned: set[int], alive: set[int]
) -> tuple[Mapping[int, list[int]], Mapping[int, list[int]]]:
    """Attach each token that only the target has to the surviving token before it, or else to the one behind it; one
    between two that are gone goes too."""
    behind: dict[int, list[int]] = {}
    ahead: dict[int, list[int]] = {}
    at = 0
    while at < len(target):
        if at in aligned:
            at += 1
            continue
        end = at
        while end < len(target) and end not in aligned:
            end += 1
        if at - 1 in alive or at == 0:
            (behind if at else ahead).setdefault(at - 1 if at else end, []).extend(range(at, end))
        elif end in alive:
            ahead.setdefault(end, []).extend(range(at, end))
        at = end
    return behind, ahead


def _new_token(
    token: Token,
    slow: Sequence[Token],
    target: Sequence[Token],
    before: int | None,
    there: Mapping[int, int],
    names: Renaming,
) -> list[Token]:
    """Return what stands for a token that the edit wrote.

    A number that it multiplied or divided is multiplied or divided here too, where another one stands.
    """
    if token.kind == "number" and before is not None and before in there:
        own = target[there[before]]
        if slow[before].kind == own.kind == "number" and own.value != slow[before].value:
            scaled = _scaled(slow[before].text, token.text, own.text)
            if scaled is not None:
                return [replace(token, text=scaled, value=scaled)]
        return [token]
    return names.tokens(token)


def _scaled(slow: str, fast: str, own: str) -> str | None:
    try:
        a, b, c = int(slow), int(fast), int(own)
    except ValueError:
        return None
    if a and b and b % a == 0:
        return str(c * (b // a))
    if a and b and a % b == 0 and c % (a // b) == 0:
        return str(c // (a // b))
    return None
