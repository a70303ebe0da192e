"""Which lines of a file the coder is shown: those to be changed, what stands around them, and what they rest on."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from accelopt_agent.model.anchors import Anchor
from accelopt_agent.syntax.lines import split_lines
from accelopt_agent.syntax.scopes import Scope, scopes_of
from accelopt_profiling.source_text import parse_python

#: On each side of an anchor so many lines are shown, or fewer (one at least) that are this long together: kernels
#: that a program wrote have lines of hundreds of characters.
AROUND, AROUND_CHARACTERS = 4, 240

#: What is left out between two ranges is shown after all when it is no longer than this.
GAP_CHARACTERS = 24

_NAME = re.compile(r"[A-Za-z_]\w*")
_BINDS = re.compile(r"\s*(?:for\s+)?([A-Za-z_]\w*)\s*(?:=[^=]|in\b)")


def window(text: str, kernel: str, anchors: Sequence[Anchor], around: int = AROUND) -> list[tuple[int, int]]:
    """The ranges of lines (1-based, inclusive) that show the anchors: up to ``around`` lines on each side, the kernel's
    head, the imports of what the kernel uses, and for each name used in the anchors the last line before them that
    binds it. Little that would be left out between two ranges is shown."""
    lines = split_lines(text).texts
    tree = parse_python(text)
    wanted: set[int] = set()
    names: set[str] = set()
    for anchor in anchors:
        wanted.update(range(anchor.first, anchor.last + 1))
        wanted.update(_near(lines, range(anchor.first - 1, 0, -1), around))
        wanted.update(_near(lines, range(anchor.last + 1, len(lines) + 1), around))
        for line in lines[anchor.first - 1 : anchor.last]:
            names.update(_NAME.findall(line))
    scope = next((s for s in scopes_of(tree) if s.name == kernel), None)
    if scope is not None:
        wanted.update(range(scope.node.lineno, scope.node.body[0].lineno))
    before = max(a.first for a in anchors)
    wanted.update(_imports(tree, scope, before))
    nearest: dict[str, int] = {}
    for number, line in enumerate(lines[: before - 1], 1):
        bound = _BINDS.match(line)
        if bound and bound[1] in names:
            nearest[bound[1]] = number
    wanted.update(nearest.values())
    ranges: list[tuple[int, int]] = []
    for number in sorted(wanted):
        gap = "".join(line.strip() for line in lines[ranges[-1][1] : number - 1]) if ranges else ""
        if ranges and len(gap) <= GAP_CHARACTERS:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


def _near(lines: Sequence[str], numbers: range, most: int) -> list[int]:
    """The first ``most`` of the lines ``numbers``, fewer where they are long."""
    taken: list[int] = []
    room = AROUND_CHARACTERS
    for number in numbers[:most]:
        room -= len(lines[number - 1].strip())
        if taken and room < 0:
            break
        taken.append(number)
    return taken


def _imports(tree: ast.AST, scope: Scope | None, before: int) -> set[int]:
    """The lines before line ``before`` that import, for the whole file or the kernel, what the kernel uses by name; an
    import of everything always, and one that the kernel repeats only there."""
    kernel = scope.node if scope is not None else tree
    used = {n.id for n in ast.walk(kernel) if isinstance(n, ast.Name)}
    found: dict[str, set[int]] = {}
    for place in (tree, kernel):
        for node in ast.iter_child_nodes(place):
            if not isinstance(node, (ast.Import, ast.ImportFrom)) or node.lineno >= before:
                continue
            lines = set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                if name == "*" or name in used:
                    found[name if name != "*" else f"* {node.lineno}"] = lines
    return set().union(*found.values())
