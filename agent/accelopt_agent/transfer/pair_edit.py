"""Reads the edit of a slow-fast pair: all that it changes in a file, line by line."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from accelopt_agent.syntax.token_lines import LogicalLine, TokenizedSource, code_lines, read_tokens
from accelopt_agent.transfer.alignment import align_lines, in_common, line_features, line_head
from accelopt_memory.records import content_id

#: Where a line of the slow side stands: the name of its function ("" for the module), its number there.
LinePlace = tuple[str, int]

#: A changed line keeps at least so much of what it was (0..1), and a moved one so much.
LEAST_KEPT, LEAST_MOVED = 0.6, 0.75


@dataclass(frozen=True)
class LineEdit:
    """One line of the fast side (``fast``), or one that it lacks (None). ``slow`` is the line of the slow side in the
    same place, ``source`` the one that a line was moved or copied from. Lines of one ``hunk`` are changed together;
    0 is none."""

    fast: int | None
    slow: int | None
    source: LinePlace | None = None
    hunk: int = 0


@dataclass(frozen=True)
class BlockEdit:
    """The edit of one function, or of the module outside of functions (``name`` is ""). ``lines`` are in the order of
    the fast side. ``slow_lines`` is empty for a new function, ``fast_lines`` for one that is gone."""

    name: str
    slow_lines: tuple[LogicalLine, ...]
    fast_lines: tuple[LogicalLine, ...]
    lines: tuple[LineEdit, ...]


@dataclass(frozen=True)
class PairEdit:
    """Everything that changes between the two sides of a pair.

    ``hunks`` are the numbers of its independent parts.
    """

    slow: TokenizedSource
    fast: TokenizedSource
    blocks: tuple[BlockEdit, ...]
    hunks: tuple[int, ...]

    def block(self, name: str) -> BlockEdit | None:
        return next((b for b in self.blocks if b.name == name), None)


@lru_cache(maxsize=256)
def read_edit(slow_text: str, fast_text: str) -> PairEdit:
    """Return the edit between two texts.

    Raises:
        SyntaxError: one of them does not parse.
    """
    slow, fast = read_tokens(slow_text), read_tokens(fast_text)
    sides = _blocks_of(slow), _blocks_of(fast)
    names = [*sides[0], *(name for name in sides[1] if name not in sides[0])]
    blocks = [_block_edit(name, sides[0].get(name, ()), sides[1].get(name, ())) for name in names]
    blocks = list(_with_sources(blocks))
    blocks, hunks = _numbered(blocks)
    return PairEdit(slow, fast, tuple(blocks), hunks)


def edit_id(edit: PairEdit) -> str:
    """Return the id of what the edit says, blind to names, comments and layout: pairs with one id teach the same."""
    numbers: dict[str, str] = {}
    parts: list[str] = []
    for block in edit.blocks:
        for entry in block.lines:
            if not entry.hunk:
                continue
            for mark, lines, at in (("-", block.slow_lines, entry.slow), ("+", block.fast_lines, entry.fast)):
                if at is not None:
                    tokens = lines[at].tokens
                    parts.append(mark)
                    parts += [
                        numbers.setdefault(t.value, f"${len(numbers)}") if t.kind == "local" else t.value
                        for t in tokens
                    ]
    return content_id("edit", *parts)


def _blocks_of(source: TokenizedSource) -> dict[str, tuple[LogicalLine, ...]]:
    """Return the lines of each function and of the module, without docstrings."""
    blocks = {f.name: f.lines for f in source.functions} | {"": tuple(source.lines[k] for k in source.module)}
    return {name: tuple(code_lines(lines)) for name, lines in blocks.items()}


def _block_edit(name: str, slow: tuple[LogicalLine, ...], fast: tuple[LogicalLine, ...]) -> BlockEdit:
    """Align the two versions of one block: equal lines first, then, between these, lines that keep most of what they
    were."""
    matcher = difflib.SequenceMatcher(
        None, [(x.depth, x.key) for x in slow], [(x.depth, x.key) for x in fast], autojunk=False
    )
    lines: list[LineEdit] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            lines += [LineEdit(j, i) for i, j in zip(range(i1, i2), range(j1, j2), strict=True)]
            continue
        own = {t.value: t.value for x in slow[i1:i2] for t in x.tokens if t.kind == "local"}
        pairs = align_lines(slow[i1:i2], fast[j1:j2], own, LEAST_KEPT)
        partner = {j1 + j: i1 + i for i, j in pairs}
        i = i1
        for j in range(j1, j2):
            at = partner.get(j)
            if at is not None:
                lines += [LineEdit(None, k, hunk=1) for k in range(i, at)]
                i = at + 1
            lines.append(LineEdit(j, at, hunk=1))
        lines += [LineEdit(None, k, hunk=1) for k in range(i, i2)]
    return BlockEdit(name, slow, fast, tuple(lines))


def _with_sources(blocks: Sequence[BlockEdit]) -> Iterator[BlockEdit]:
    """Find for each added line the line of the slow side that it was moved from, or else is a copy of."""
    gone = [(b.name, e.slow) for b in blocks for e in b.lines if e.fast is None and e.slow is not None]
    common = [(b.name, e.slow) for b in blocks for e in b.lines if e.fast is not None and e.slow is not None]
    texts = {(b.name, k): line for b in blocks for k, line in enumerate(b.slow_lines)}
    features = {place: line_features(texts[place], _own(texts[place])) for place in (*gone, *common)}
    free = list(gone)
    for block in blocks:
        lines = []
        for edit in block.lines:
            if edit.fast is None or edit.slow is not None or (not block.name and not gone):
                lines.append(edit)
                continue
            line = block.fast_lines[edit.fast]
            mine, head = line_features(line, _own(line)), line_head(line)
            best: tuple[float, LinePlace] | None = None
            for places, least in ((free, LEAST_MOVED), (gone, 0.999), (common, 0.999)):
                for place in places:
                    if line_head(texts[place]) == head:
                        alike = in_common(mine, features[place]) + 0.001 * (place[0] == block.name)
                        if alike >= least and (best is None or alike > best[0] + 1e-9):
                            best = alike, place
                if best is not None:
                    break
            if best is not None and best[1] in free:
                free.remove(best[1])
            lines.append(replace(edit, source=best[1] if best else None))
        yield replace(block, lines=tuple(lines))


def _own(line: LogicalLine) -> dict[str, str]:
    return {t.value: t.value for t in line.tokens if t.kind == "local"}


def _numbered(blocks: Sequence[BlockEdit]) -> tuple[list[BlockEdit], tuple[int, ...]]:
    """Number the runs of changed lines.

    One hunk are the place that a line moves from and the one that it moves to, what uses a name and what binds it anew,
    and what changes a function's parameters and what calls it.
    """
    number, parent = 0, [0]

    def root(k: int) -> int:
        while parent[k] != k:
            k = parent[k]
        return k

    of_slow: dict[LinePlace, int] = {}
    numbered: list[BlockEdit] = []
    for block in blocks:
        lines, before = [], False
        for edit in block.lines:
            if edit.hunk:
                if not before:
                    number += 1
                    parent.append(number)
                if edit.slow is not None:
                    of_slow[block.name, edit.slow] = number
            before = bool(edit.hunk)
            lines.append(replace(edit, hunk=number if edit.hunk else 0))
        numbered.append(replace(block, lines=tuple(lines)))
    of_name: dict[str, int] = {}
    for block in numbered:
        for edit in block.lines:
            together = [of_slow[edit.source]] if edit.source in of_slow else []
            for name in _names_changed(block, edit):
                together.append(of_name.setdefault(name, edit.hunk))
            for other in together:
                a, b = sorted((root(edit.hunk), root(other)))
                parent[b] = a
    joined = [replace(b, lines=tuple(replace(e, hunk=root(e.hunk)) for e in b.lines)) for b in numbered]
    return joined, tuple(sorted({e.hunk for b in joined for e in b.lines} - {0}))


def _names_changed(block: BlockEdit, edit: LineEdit) -> set[str]:
    """Return the local names that a line gains or loses, each with its block, and the functions whose head it is or
    that it calls."""
    if not edit.hunk:
        return set()
    sides = [
        lines[at]
        for lines, at in ((block.slow_lines, edit.slow), (block.fast_lines, edit.fast))
        if at is not None
    ]
    names = [{t.value for t in line.tokens if t.kind == "local"} for line in sides]
    changes = {f"{block.name} {name}" for name in (names[0] ^ names[1] if len(names) == 2 else ())}
    for line in sides:
        for before, after in itertools.pairwise(line.tokens):
            if before.kind == "local" and after.text in ("[", "("):
                changes.add(f"def {before.value}")
    return changes
