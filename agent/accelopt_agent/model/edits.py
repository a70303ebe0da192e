"""Reads a coder's changes and applies them to the file.

They are search-and-replace blocks, or new text for every place that a plan names by its line numbers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from accelopt_agent.syntax.lines import split_lines


class InvalidAnswerError(ValueError):
    """An answer without edits that fit the file; one line."""


@dataclass(frozen=True)
class Replacement:
    """Replaces whole lines of the file by others."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


_HEAD = re.compile(r"^\s*<{4,}\s*(SEARCH|ORIGINAL)?\s*$", re.IGNORECASE)
_MIDDLE = re.compile(r"^\s*={4,}\s*$")
_TAIL = re.compile(r"^\s*>{4,}\s*(REPLACE|UPDATED)?\s*$", re.IGNORECASE)
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})[\w+-]*\s*$")

#: More blocks than this is no edit but a model that repeats itself.
MOST_BLOCKS = 64


def has_edits(answer: str) -> bool:
    """Return whether ``answer`` begins a search-and-replace edit."""
    return any(_HEAD.match(line) for line in split_lines(answer).texts)


def read_edits(answer: str) -> list[Replacement]:
    """Read the edits of ``answer``, ignoring text and fences around them.

    A repeated block counts once.

    Raises:
        InvalidAnswerError: there are none, or one is not finished.
    """
    replacements: dict[Replacement, None] = {}
    search: list[str] | None = None
    replace: list[str] | None = None
    for line in split_lines(answer).texts:
        if _HEAD.match(line):
            search, replace = [], None
        elif search is not None and replace is None and _MIDDLE.match(line):
            replace = []
        elif search is not None and replace is not None and _TAIL.match(line):
            replacements.setdefault(Replacement(without_fences(search), without_fences(replace)))
            search = replace = None
        elif search is not None:
            (search if replace is None else replace).append(line)
        if len(replacements) > MOST_BLOCKS:
            raise InvalidAnswerError(f"the answer has more than {MOST_BLOCKS} edits")
    if search is not None:
        raise InvalidAnswerError("the answer ends inside an edit")
    if not replacements:
        raise InvalidAnswerError("the answer holds no edits")
    return list(replacements)


def without_fences(lines: list[str]) -> tuple[str, ...]:
    """Remove the fences that some models put inside a block."""
    if len(lines) >= 2 and _FENCE.match(lines[0]) and _FENCE.match(lines[-1]):
        lines = lines[1:-1]
    return tuple(line.rstrip() for line in lines)


def apply_edits(text: str, edits: list[Replacement]) -> str:
    """Apply all ``edits`` to ``text``; each must match exactly once.

    White space at line ends is ignored, and so is an indent that all lines of a block lack.

    Raises:
        InvalidAnswerError: a block is empty, not in the file, or in it more than once.
    """
    for edit in edits:
        lines = split_lines(text)
        if not any(line.strip() for line in edit.search):
            raise InvalidAnswerError("an edit does not say which lines it changes")
        at, indent = _place(lines.texts, edit.search)
        new = [indent + line if line.strip() else line for line in edit.replace]
        end = lines.ends[at + len(edit.search) - 1]
        bodies = [*lines.texts[:at], *new, *lines.texts[at + len(edit.search) :]]
        ends = [*lines.ends[:at], *[lines.newline] * (len(new) - 1), *([end] if new else [])]
        ends += lines.ends[at + len(edit.search) :]
        text = "".join(body + stop for body, stop in zip(bodies, ends, strict=True))
    return text


def _place(lines: tuple[str, ...], search: tuple[str, ...]) -> tuple[int, str]:
    """Find ``search`` in ``lines``: its index, and the indent it lacks."""
    places = []
    for at in range(len(lines) - len(search) + 1):
        indent = _missing_indent(lines[at : at + len(search)], search)
        if indent is not None:
            places.append((at, indent))
    exact = [place for place in places if not place[1]]
    places = exact or places
    if not places:
        raise InvalidAnswerError(f"an edit changes lines that are not in the file: {_first_line(search)}")
    if len(places) > 1:
        raise InvalidAnswerError(f"an edit fits {len(places)} places in the file: {_first_line(search)}")
    return places[0]


def _missing_indent(lines: tuple[str, ...], search: tuple[str, ...]) -> str | None:
    indents = set()
    for line, pattern in zip(lines, search, strict=True):
        if not pattern.strip() or not line.strip():
            if pattern.strip() or line.strip():
                return None
            continue
        if not line.rstrip().endswith(pattern):
            return None
        before = line.rstrip()[: len(line.rstrip()) - len(pattern)]
        if before.strip():
            return None
        indents.add(before)
    return indents.pop() if len(indents) == 1 else None


def _first_line(search: tuple[str, ...]) -> str:
    first = next(line.strip() for line in search if line.strip())
    return first if len(first) <= 60 else first[:57] + "..."


#: Stands for lines that are not shown.
LEFT_OUT = "# ... (code that the problem does not run)"

#: More anchors than this is no plan but a rewrite.
MOST_ANCHORS = 6

_LINES = re.compile(
    r"\blines?\b[ *_`:]*((?:\d+\s*(?:(?:-|–|to)\s*\d+)?(?:\s*(?:,|and|&)\s*)*)+)", re.IGNORECASE
)
_RANGE = re.compile(r"(\d+)\s*(?:(?:-|–|to)\s*(\d+))?")
_BEGIN = re.compile(r"^\s*<{4,}\s*CHANGE\s+(\d+)\s*$", re.IGNORECASE)
_END = re.compile(r"^\s*>{4,}\s*(?:CHANGE)?\s*(\d+)?\s*$", re.IGNORECASE)
_MARK = re.compile(r"^\s*#\s*(?:<{3}|>{3})\s*change\s+\d+\s*$", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Anchor:
    """The lines ``first`` to ``last`` (1-based, inclusive) that a plan changes."""

    first: int
    last: int


def parse_anchors(plan: str, text: str) -> tuple[Anchor, ...]:
    """Read the lines that ``plan`` names first as anchors in ``text``.

    They are in order, overlapping ones joined.

    Raises:
        InvalidAnswerError: it names none, too many, or lines that the file does not have.
    """
    lines = split_lines(text).texts
    count = len(lines) - (not lines[-1])
    anchors: list[Anchor] = []
    for match in _LINES.finditer(plan):
        for first, last in _RANGE.findall(match[1]):
            anchors.append(Anchor(int(first), int(last or first)))
        if anchors:
            break
    if not anchors:
        raise InvalidAnswerError("the plan names no lines")
    for anchor in anchors:
        if not 1 <= anchor.first <= anchor.last <= count:
            raise InvalidAnswerError(f"the plan names lines {anchor.first}-{anchor.last} of {count}")
    joined: list[Anchor] = []
    for anchor in sorted(anchors):
        if joined and anchor.first <= joined[-1].last + 1:
            joined[-1] = Anchor(joined[-1].first, max(joined[-1].last, anchor.last))
        else:
            joined.append(anchor)
    if len(joined) > MOST_ANCHORS:
        raise InvalidAnswerError(f"the plan names {len(joined)} places, more than {MOST_ANCHORS}")
    return tuple(joined)


def numbered(text: str, first: int = 1, last: int | None = None, hidden: Collection[int] = ()) -> str:
    """Return lines of ``text`` with their numbers, but those ``hidden``."""
    lines = split_lines(text).texts
    return "\n".join(
        f"{number} {lines[number - 1]}".rstrip() if number else LEFT_OUT
        for number in _visible(range(first, (last or len(lines)) + 1), hidden)
    )


def text_with_anchors(
    text: str,
    anchors: Sequence[Anchor],
    first: int = 1,
    last: int | None = None,
    hidden: Collection[int] = (),
) -> str:
    """Return lines of ``text`` with each anchor marked, but those ``hidden``."""
    begins = {a.first: k for k, a in enumerate(anchors, 1)}
    ends = {a.last: k for k, a in enumerate(anchors, 1)}
    lines = split_lines(text).texts
    rows: list[str] = []
    for number in _visible(range(first, (last or len(lines)) + 1), hidden):
        if number in begins:
            rows.append(f"# <<< change {begins[number]}")
        rows.append(lines[number - 1] if number else LEFT_OUT)
        if number in ends:
            rows.append(f"# >>> change {ends[number]}")
    return "\n".join(rows)


def _visible(numbers: range, hidden: Collection[int]) -> Iterator[int]:
    """Yield the ``numbers``, and 0 once for each run of ``hidden`` ones."""
    before = 0
    for number in numbers:
        if number not in hidden:
            yield number
        elif before not in hidden:
            yield 0
        before = number


def apply_plan_answer(text: str, anchors: Sequence[Anchor], answer: str) -> str:
    """Apply the changes of ``answer`` to ``text``.

    There is one per anchor, or they are search-and-replace edits inside the anchors.

    Raises:
        InvalidAnswerError: a change has no anchor, an anchor has no change or is unchanged, a mark stayed in the code,
            or an edit changes lines outside the anchors.
    """
    changes = _changes(answer, len(anchors))
    if changes is None:
        changed = apply_edits(text, read_edits(answer))
        _inside(text, changed, anchors)
        return changed
    lines = split_lines(text)
    bodies, ends = list(lines.texts), list(lines.ends)
    for number, anchor in reversed(list(enumerate(anchors, 1))):
        if number not in changes:
            raise InvalidAnswerError(f"change {number} is left over: the answer does not say what it becomes")
        old = bodies[anchor.first - 1 : anchor.last]
        new = _indented(changes[number], old)
        if [line.rstrip() for line in old] == new:
            raise InvalidAnswerError(f"change {number} is left as it was: the plan is not carried out")
        last_end = ends[anchor.last - 1]
        bodies[anchor.first - 1 : anchor.last] = new
        ends[anchor.first - 1 : anchor.last] = [*[lines.newline] * (len(new) - 1), last_end] if new else []
    return "".join(body + end for body, end in zip(bodies, ends, strict=True))


def has_changes(answer: str) -> bool:
    """Return whether ``answer`` begins a numbered change."""
    return any(_BEGIN.match(line) for line in split_lines(answer).texts)


def _changes(answer: str, count: int) -> dict[int, list[str]] | None:
    """Read the numbered changes of the answer; None where it has none."""
    changes: dict[int, list[str]] = {}
    number: int | None = None
    for line in split_lines(answer).texts:
        if (begin := _BEGIN.match(line)) is not None:
            number = int(begin[1])
            if not 1 <= number <= count:
                raise InvalidAnswerError(f"the answer has a change {number}; the plan has {count}")
            changes[number] = []
        elif number is not None and _END.match(line):
            number = None
        elif number is not None:
            changes[number].append(line)
    if number is not None:
        raise InvalidAnswerError(f"the answer ends inside change {number}")
    for lines in changes.values():
        if any(_MARK.match(line) for line in lines):
            raise InvalidAnswerError("a mark of a change stayed in the code")
    return {k: list(without_fences(lines)) for k, lines in changes.items()} or None


def _indented(new: list[str], old: Sequence[str]) -> list[str]:
    """Indent ``new`` like ``old`` where it begins at the left edge."""
    want = min((_indent(line) for line in old if line.strip()), default=0)
    have = min((_indent(line) for line in new if line.strip()), default=want)
    prefix = next((line[:want] for line in old if line.strip() and _indent(line) == want), "")
    if have == 0 and want > 0:
        return [prefix + line if line.strip() else "" for line in new]
    return new


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _inside(before: str, after: str, anchors: Sequence[Anchor]) -> None:
    """Check that ``after`` differs inside every anchor, and nowhere else.

    Raises InvalidAnswerError.
    """
    old, new = split_lines(before).texts, split_lines(after).texts
    touched: set[int] = set()
    for tag, low, high, _, _ in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        at = [k for k, a in enumerate(anchors) if a.first <= low + 1 and high <= a.last]
        at += [k for k, a in enumerate(anchors) if tag == "insert" and a.first - 1 <= low <= a.last]
        if not at:
            raise InvalidAnswerError(f"an edit reaches out of the planned lines, to line {low + 1}")
        touched.update(at)
    untouched = [k + 1 for k in range(len(anchors)) if k not in touched]
    if untouched:
        raise InvalidAnswerError(f"change {untouched[0]} is left as it was: the plan is not carried out")
