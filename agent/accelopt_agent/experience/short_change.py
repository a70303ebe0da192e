"""Shows a change in few lines: those that say most about what it does."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from accelopt_agent.syntax.lines import split_lines

#: The most lines of a change that are shown, and the most characters of each.
MOST_LINES, MOST_CHARACTERS = 8, 140

_CALL = re.compile(r"[\w.]+\(")
_LIBRARY = re.compile(r"\b(?:tl|nl|nisa|libdevice)\.\w+")


def short_change(
    slow: str, fast: str, most: int = MOST_LINES, width: int = MOST_CHARACTERS
) -> tuple[tuple[str, ...], int]:
    """Return at most ``most`` lines of the difference between two texts, each with its "-" or "+", in their order, and
    how many more changed. Blank lines, comments and imports are never shown.

    Lines that call, loop, decide or launch are shown before others, those that come before their like first; no side
    gets more than its half while the other one has lines left.
    """
    lines = _difference(slow, fast)
    shares = _shares([sum(sign == side for side, _ in lines) for sign in "-+"], most)
    numbers: set[int] = set()
    for sign, share in zip("-+", shares, strict=True):
        own = [k for k, (side, _) in enumerate(lines) if side == sign]
        numbers |= set(sorted(own, key=lambda k: (-_weight(lines[k][1]), k))[:share])
    indent = min((len(t) - len(t.lstrip()) for k, (_, t) in enumerate(lines) if k in numbers), default=0)
    excerpt = tuple(_cut(sign + text[indent:], width) for k, (sign, text) in enumerate(lines) if k in numbers)
    return excerpt, len(lines) - len(excerpt)


def _difference(slow: str, fast: str) -> list[tuple[str, str]]:
    old, new = split_lines(slow).texts, split_lines(fast).texts
    changes = []
    for line in difflib.unified_diff(old, new, lineterm="", n=0):
        if line[:1] in "-+" and not line.startswith(("---", "+++")) and _says_something(line[1:]):
            changes.append((line[0], line[1:].rstrip()))
    return changes


def _says_something(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith(("#", "import ", "from ", '"""', "'''")) and text not in ")]}),"


def _shares(counts: Sequence[int], most: int) -> tuple[int, int]:
    """Divide ``most`` lines between the two sides."""
    removed = min(counts[0], max(most // 2, most - counts[1]))
    return removed, min(counts[1], most - removed)


def _weight(line: str) -> int:
    text = line.strip()
    looping = text.startswith(("for ", "while ", "if ", "def ", "@", "return "))
    launching = bool(re.search(r"\w\[[^\]]*\]\(", text))
    return 2 * bool(_LIBRARY.search(text)) + 2 * looping + 2 * launching + bool(_CALL.search(text))


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."
