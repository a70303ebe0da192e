"""Source with a comment at every place where an author may put one, and which of them a rewrite has lost."""

from __future__ import annotations

import ast
import re


def commented(text: str, first: int, last: int) -> str:
    """A comment above and behind each statement from line ``first`` to ``last``, and at the end of each loop's body."""
    above: dict[int, int] = {}
    below: dict[int, list[int]] = {}
    behind: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if (
            not isinstance(node, ast.stmt)
            or isinstance(node, ast.FunctionDef)
            or not first <= node.lineno <= last
        ):
            continue
        assert node.end_lineno is not None
        above[node.lineno] = node.col_offset
        behind.add(node.body[0].lineno - 1 if isinstance(node, ast.For) else node.end_lineno)
        if isinstance(node, ast.For):
            below.setdefault(node.end_lineno, []).append(node.body[0].col_offset)
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if number in above:
            lines.append(f"{' ' * above[number]}# above {number}.")
        lines.append(f"{line}  # behind {number}." if number in behind and "#" not in line else line)
        lines += [f"{' ' * at}# below {number} {at}." for at in sorted(below.get(number, ()), reverse=True)]
    return "\n".join(lines) + "\n"


def lost(before: str, after: str) -> list[str]:
    """The comments of ``commented`` that are in ``before`` and not in ``after``."""
    return [
        comment for comment in re.findall(r"# (?:above|behind|below) [^.]*\.", before) if comment not in after
    ]
