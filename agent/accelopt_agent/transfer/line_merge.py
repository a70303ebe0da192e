"""Merges the edit of a function into its counterpart in another kernel.

It goes line by line; of one line, what the edit changed goes into the line that stands in the other kernel.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from accelopt_agent.syntax.token_lines import LogicalLine, Token
from accelopt_agent.transfer.alignment import Renaming, align_tokens, in_common, line_features, line_head
from accelopt_agent.transfer.kernel_match import BlockMatch, KernelMatch
from accelopt_agent.transfer.pair_edit import BlockEdit, LineEdit, PairEdit

#: A line that only the other kernel has is changed as one that has this much in common with it (0..1).
LEAST_LIKE = 0.85


@dataclass
class MergedLine:
    """A line of the result.

    ``own`` is the line of the other kernel that it is made of (its comments go with it), None for a new one; ``fast``
    the depth and number of the line of the fast side that put it here.
    """

    tokens: list[Token]
    depth: int
    own: LogicalLine | None = None
    fast: int | None = None
    fast_depth: int = 0


@dataclass
class MergedBlock:
    """One function (the module: "") after the merge.

    ``wanted`` counts the lines that the edit changes or moves away, ``placed`` those of them that the other kernel has.
    ``lines`` is None where the function is not touched or gone.
    """

    name: str
    target_name: str | None
    lines: list[MergedLine] | None
    wanted: float = 0.0
    placed: float = 0.0
    changed: bool = False
    gone: bool = False
    rewritten: dict[int, MergedLine | None] = field(default_factory=dict)  # of the module: by number there


def merge_block(block: BlockEdit, edit: PairEdit, match: KernelMatch, hunks: frozenset[int]) -> MergedBlock:
    """Apply the parts ``hunks`` of the edit to one function's counterpart."""
    counterpart = match.blocks.get(block.name)
    merged = MergedBlock(block.name, counterpart.target_name if counterpart else None, None)
    touched = [e for e in block.lines if e.hunk in hunks]
    if not touched:
        return merged
    merged.changed = True
    for line in touched:
        if line.slow is not None:
            merged.wanted += 1
            merged.placed += match.counterpart((block.name, line.slow)) is not None
    if not any(line.slow is not None for line in touched):
        merged.wanted += 1
        merged.placed += counterpart is not None or not block.slow_lines
    if counterpart is None:
        if not block.slow_lines:
            merged.lines = [
                MergedLine(*_new(e, block, edit=edit, match=match, names=match.shared))
                for e in touched
                if e.fast is not None
            ]
        return merged
    if not block.fast_lines and hunks.issuperset(e.hunk for e in block.lines):
        merged.gone = True
        return merged
    merged.lines = _BlockMerge(block, edit, match=match, there=counterpart, hunks=hunks).lines()
    return merged


def _new(
    entry: LineEdit, block: BlockEdit, edit: PairEdit, match: KernelMatch, names: Renaming
) -> tuple[list[Token], int]:
    assert entry.fast is not None
    line = block.fast_lines[entry.fast]
    if entry.source is not None and (there := match.counterpart(entry.source)) is not None:
        other, at = there
        slow = edit.block(entry.source[0])
        assert slow is not None
        return merge_line(
            slow.slow_lines[entry.source[1]],
            line,
            target=other.target[at],
            renaming=other.renaming,
            names=names,
        ), line.depth
    return renamed_line(line, names), line.depth


class _BlockMerge:
    def __init__(
        self, block: BlockEdit, edit: PairEdit, match: KernelMatch, there: BlockMatch, hunks: frozenset[int]
    ) -> None:
        self._block, self._edit, self._match, self._there, self._hunks = block, edit, match, there, hunks
        self._headers = _headers(there.target)

    def lines(self) -> list[MergedLine]:
        placed = list(self._placed())
        self._set_depths(placed)
        return self._with_own(placed)

    def _placed(self) -> Iterator[MergedLine]:
        """Yield the lines that the edit says, in the order of the fast side."""
        block, there = self._block, self._there
        for entry in block.lines:
            applied = entry.hunk in self._hunks
            if applied and entry.fast is None:
                continue
            if entry.hunk and not applied and entry.slow is None:
                continue
            if applied and entry.slow is None:
                yield from self._added(entry)
                continue
            assert entry.slow is not None
            slow = block.slow_lines[entry.slow]
            fast = slow
            if applied or not entry.hunk:
                assert entry.fast is not None
                fast = block.fast_lines[entry.fast]
            at = there.lines.get(entry.slow)
            if at is None and applied:
                at = there.loose.get(entry.slow)
            if at is not None:
                own = there.target[at]
                tokens = merge_line(slow, fast, own, there.renaming)
                depth = own.depth + fast.depth - slow.depth
                yield MergedLine(tokens, depth, own=own, fast=at, fast_depth=fast.depth)

    def _added(self, entry: LineEdit) -> Iterator[MergedLine]:
        assert entry.fast is not None
        line = self._block.fast_lines[entry.fast]
        names = self._there.renaming
        if entry.source is not None:
            there = self._match.counterpart(entry.source)
            if there is None:
                source = self._match.blocks.get(entry.source[0])
                if source is not None:
                    return  # a line that the other kernel lacks, moved
            else:
                slow = self._edit.block(entry.source[0])
                assert slow is not None
                other, at = there
                tokens = merge_line(
                    slow.slow_lines[entry.source[1]],
                    line,
                    target=other.target[at],
                    renaming=other.renaming,
                    names=names,
                )
                own = other.target[at]
                same = entry.source[0] == self._block.name
                yield MergedLine(tokens, -1, own=own, fast=at if same else None, fast_depth=line.depth)
                return
        yield MergedLine(renamed_line(line, names), -1, own=None, fast=None, fast_depth=line.depth)

    @staticmethod
    def _set_depths(lines: list[MergedLine]) -> None:
        """Give the lines that were added the depth of what stands around them."""
        for k, line in enumerate(lines):
            if line.depth >= 0:
                continue
            line.depth = line.fast_depth
            for near in (*reversed(lines[:k]), *lines[k + 1 :]):
                if near.depth >= 0 and near.fast_depth <= line.fast_depth:
                    line.depth = near.depth + line.fast_depth - near.fast_depth
                    break

    def _with_own(self, placed: list[MergedLine]) -> list[MergedLine]:
        """Add the lines that only the other kernel has, each behind the line before it there. What stood in a block
        that is gone goes with it."""
        there = self._there
        present = set(there.lines.values()) | {at for i, at in there.loose.items() if self._moves(i)}
        first: dict[int, MergedLine] = {}
        for line in placed:
            if line.fast is not None:
                first.setdefault(line.fast, line)
        behind: dict[int, list[MergedLine]] = {}
        ahead: dict[int, list[MergedLine]] = {}
        headers = self._headers
        stays: set[int] = set()
        leading: list[MergedLine] = []
        for k, own in enumerate(there.target):
            if k in present:
                continue
            header = headers[k]
            beside = [p for p in first if headers[p] == header]  # in the same block
            if header is not None and header not in first and header not in stays and not beside:
                continue
            stays.add(k)
            before = max((p for p in first if p < k and (p in beside or not beside)), default=None)
            after = min((p for p in beside if p > k), default=None)
            anchor = before if before is not None else after
            moved = 0 if anchor is None else first[anchor].depth - there.target[anchor].depth
            line = MergedLine(
                self._likewise(own, header), own.depth + moved, own=own, fast=k, fast_depth=own.depth
            )
            if before is not None:
                last = max((p for p in first if before <= p < k), default=before)
                behind.setdefault(id(first[last]), []).append(line)
            elif after is not None:
                ahead.setdefault(id(first[after]), []).append(line)
            else:
                leading.append(line)
        result = leading
        for line in placed:
            result += [*ahead.get(id(line), ()), line, *behind.get(id(line), ())]
        return result

    def _likewise(self, own: LogicalLine, header: int | None) -> list[Token]:
        """Return a line that only the other kernel has, changed as the edit changes one like it in the same block."""
        best: tuple[float, LineEdit | None] = LEAST_LIKE, None
        mine, headers = line_features(own, {}), self._headers
        for entry in self._block.lines:
            if entry.slow is None or entry.fast is None or entry.hunk not in self._hunks:
                continue
            at, slow = self._there.lines.get(entry.slow), self._block.slow_lines[entry.slow]
            if at is None or headers[at] != header or line_head(slow) != line_head(own):
                continue
            alike = in_common(mine, line_features(slow, {}))
            if alike > best[0]:
                best = alike, entry
        if best[1] is None:
            return list(own.tokens)
        assert best[1].slow is not None
        assert best[1].fast is not None
        slow, fast = self._block.slow_lines[best[1].slow], self._block.fast_lines[best[1].fast]
        return merge_line(slow, fast, own, self._there.renaming)

    def _moves(self, slow: int) -> bool:
        """Return whether the edit changes, moves or deletes a line."""
        return any(e.slow == slow and e.hunk in self._hunks for e in self._block.lines)


def _headers(lines: Sequence[LogicalLine]) -> list[int | None]:
    """Return for each line the number of the line whose block it stands in."""
    headers: list[int | None] = []
    for k, line in enumerate(lines):
        headers.append(next((p for p in range(k - 1, -1, -1) if lines[p].depth < line.depth), None))
    return headers


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
    merged = _merged(
        slow.tokens, fast.tokens, target=target.tokens, renaming=renaming, names=names or renaming
    )
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
            merged += _new_token(token, slow, target=target, before=replaced.get(j), there=there, names=names)
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
