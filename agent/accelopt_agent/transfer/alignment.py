"""Aligns two versions of a kernel: logical lines with logical lines, tokens with tokens.

Both are global alignments by dynamic programming (S. Needleman, C. Wunsch, "A general method applicable to the search
for similarities in the amino acid sequence of two proteins", 1970), in which a pair counts what the two have in common
and a gap counts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from accelopt_agent.syntax.token_lines import LogicalLine, Token

#: Two lines that have less than this in common (0..1) are not aligned.
LEAST_COMMON = 0.45

_HEADS = frozenset(
    ["for", "while", "if", "elif", "else", "def", "return", "with", "class", "try", "except", "finally",
     "assert", "import", "from", "raise", "pass", "break", "continue", "@"]
)  # fmt: skip
#: How much one token says about what its line does.
_WEIGHTS = {"fixed": 2.0, "operator": 0.3, "string": 0.5, "number": 0.3, "local": 0.3}
#: How much more it says that a name or a number is the same on both sides.
_SAME = {"number": 0.5, "local": 1.2}

Features = Mapping[tuple[str, str], float]


def line_head(line: LogicalLine) -> str:
    """Return the kind of statement: its keyword, "=" for an assignment, "" for an expression."""
    first = line.tokens[0].text
    if first in _HEADS:
        return "if" if first == "elif" else first
    level = 0
    for token in line.tokens:
        level += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if not level and token.kind == "operator" and token.text.endswith("=") and token.text != "==":
            return "="
    return ""


def line_features(line: LogicalLine, names: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Return what a line says, weighted.

    Local names are taken as ``names`` calls them, others count by their kind only. A line of the side whose names are
    known passes itself.
    """
    features: dict[tuple[str, str], float] = {}
    for token in line.tokens:
        same = token.value if token.kind not in ("local", "number") else ""
        key: tuple[str, str] = (token.kind, same)
        features[key] = features.get(key, 0.0) + _WEIGHTS[token.kind]
        if token.kind in _SAME:
            name = token.value if token.kind == "number" else names.get(token.value, "")
            if name:
                key = ("same", name)
                features[key] = features.get(key, 0.0) + _SAME[token.kind]
    return features


def in_common(a: Features, b: Features) -> float:
    """Return how much two lines or functions have in common: twice the sum of minima over the sum of both, 0..1."""
    if len(a) > len(b):
        a, b = b, a
    shared = sum(min(weight, b[key]) for key, weight in a.items() if key in b)
    total = sum(a.values()) + sum(b.values())
    return 2 * shared / total if total else 1.0


def align(left: int, right: int, score: Callable[[int, int], float], least: float) -> list[tuple[int, int]]:
    """Return the pairs (i, j), both ascending, whose summed score above ``least`` is greatest."""
    best = [[0.0] * (right + 1) for _ in range(left + 1)]
    gains = [[0.0] * right for _ in range(left)]
    for i in range(left - 1, -1, -1):
        row, below, gain = best[i], best[i + 1], gains[i]
        for j in range(right - 1, -1, -1):
            value = score(i, j) - least
            gain[j] = value
            top = row[j + 1] if row[j + 1] > below[j] else below[j]
            if value > 0 and below[j + 1] + value >= top:
                top = below[j + 1] + value
            row[j] = top
    pairs, i, j = [], 0, 0
    while i < left and j < right:
        value = gains[i][j]
        if value > 0 and best[i][j] == best[i + 1][j + 1] + value:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def align_lines(
    left: Sequence[LogicalLine],
    right: Sequence[LogicalLine],
    names: Mapping[str, str],
    least: float = LEAST_COMMON,
) -> list[tuple[int, int]]:
    """Return the pairs of lines that do the same.

    ``names`` are the local names of ``left`` as ``right`` calls them.
    """
    own_names = {name: name for name in names.values()}
    one = [line_features(line, names) for line in left]
    other = [line_features(line, own_names) for line in right]
    heads = [line_head(line) for line in left], [line_head(line) for line in right]

    def score(i: int, j: int) -> float:
        if heads[0][i] != heads[1][j]:
            return 0.0
        return in_common(one[i], other[j]) - 0.02 * min(3, abs(left[i].depth - right[j].depth))

    return align(len(left), len(right), score, least)


def align_tokens(
    left: Sequence[Token], right: Sequence[Token], names: Mapping[str, str]
) -> list[tuple[int, int]]:
    """Return the pairs of tokens of two aligned lines that stand for each other: the same, or another name, number or
    function in its place."""

    def score(i: int, j: int) -> float:
        a, b = left[i], right[j]
        if a.kind == b.kind and names.get(a.value, a.value) == b.value:
            return 1.0 if a.kind == "operator" else 2.0
        if "operator" in (a.kind, b.kind):
            both = a.text in _ARITHMETIC and b.text in _ARITHMETIC
            return 0.4 if both else 0.0
        if a.keyword or b.keyword:
            return 0.2 if a.keyword and b.keyword and a.kind == b.kind else 0.0
        return 0.6 if a.kind == b.kind else 0.4

    return align(len(left), len(right), score, 0.1)


_ARITHMETIC = frozenset(
    ["+", "-", "*", "/", "//", "%", "<", ">", "<=", ">=", "==", "!=", "&", "|", "+=", "-=", "*=", "/="]
)
