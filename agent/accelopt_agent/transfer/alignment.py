"""Aligns two versions of a kernel: lines with lines, tokens with tokens.

Both are global alignments by dynamic programming (S. Needleman, C. Wunsch, "A general method applicable to the search
for similarities in the amino acid sequence of two proteins", 1970), in which a pair counts what the two have in common
and a gap counts nothing. What the names and numbers of one are called in the other is voted by aligned tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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


#: Numbers that stand for themselves wherever they are.
_PLAIN_NUMBERS = frozenset(["0", "1", "2", "0.0", "1.0", "2.0", "0.5"])
_TRAILERS = {".": "", "[": "]", "(": ")"}


@dataclass
class Votes:
    """What the tokens of one function were aligned with.

    An expression (``x.shape[0]``) may stand for a name.
    """

    names: dict[str, Counter[tuple[str, ...]]] = field(default_factory=dict)
    numbers: dict[str, Counter[tuple[str, ...]]] = field(default_factory=dict)

    def add(self, left: Sequence[Token], right: Sequence[Token], pairs: Sequence[tuple[int, int]]) -> None:
        """Count the aligned ``pairs`` of tokens of two aligned lines."""
        aligned = {j for _, j in pairs}
        for i, j in pairs:
            a, b = left[i], right[j]
            if a.kind == "local" and b.kind in ("local", "number"):
                image = (b.text,) if a.keyword or b.keyword else (b.text, *_trailer(right, j + 1, aligned))
                if len(image) > 1 and i + 1 < len(left) and left[i + 1].text in _TRAILERS:
                    image = (b.text,)
                self.names.setdefault(a.value, Counter())[image] += 1
            elif a.kind == "number" and b.kind in ("number", "local") and a.value not in _PLAIN_NUMBERS:
                self.numbers.setdefault(a.value, Counter())[b.text,] += 1

    def merged(self, others: Iterable[Votes]) -> Votes:
        total = Votes()
        for one in (self, *others):
            for mine, theirs in ((total.names, one.names), (total.numbers, one.numbers)):
                for name, images in theirs.items():
                    mine.setdefault(name, Counter()).update(images)
        return total


@dataclass(frozen=True)
class Renaming:
    """``names`` maps the local names of a kernel, ``numbers`` its numbers, to the tokens that stand for them in
    another. ``taken`` are the names that the other has."""

    names: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, tuple[str, ...]]
    taken: frozenset[str] = frozenset()

    @property
    def single(self) -> dict[str, str]:
        """The names that another single name stands for."""
        return {name: image[0] for name, image in self.names.items() if len(image) == 1}

    def tokens(self, token: Token) -> list[Token]:
        """Return what stands for ``token`` in the other kernel.

        A name that means something else there gets a ``_``.
        """
        if token.kind == "local":
            image = self.names.get(token.value)
            if image is None or (token.keyword and len(image) > 1):
                text = token.value
                if image is None:
                    while text in self.taken:
                        text += "_"
                image = (text,)
        elif token.kind == "number":
            image = self.numbers.get(token.value, (token.text,))
        else:
            return [token]
        kind = token.kind
        first = Token(kind, image[0], value=image[0], space=token.space, keyword=token.keyword)
        return [first, *(Token("fixed", text, text) for text in image[1:])]


def elected(votes: Votes, shared: Renaming | None, target_names: frozenset[str]) -> Renaming:
    """Return the majority of ``votes``; no two names get the same one.

    ``shared`` is asked where there is no vote.
    """
    names: dict[str, tuple[str, ...]] = {}
    used: set[tuple[str, ...]] = set()
    ballots = [
        (-count, name, image) for name, images in votes.names.items() for image, count in images.items()
    ]
    for _, name, image in sorted(ballots):
        if name not in names and image not in used:
            names[name] = image
            used.add(image)
    if shared is not None:
        names = {**{n: i for n, i in shared.names.items() if i not in used}, **names}
    numbers = {}
    for number, images in votes.numbers.items():
        image, count = min(images.items(), key=lambda item: (-item[1], item[0]))
        if count * 3 >= 2 * sum(images.values()):
            numbers[number] = image
    return Renaming(names, {**(shared.numbers if shared else {}), **numbers}, target_names)


def _trailer(tokens: Sequence[Token], start: int, aligned: set[int]) -> list[str]:
    """Return the attribute, index or call that stands behind a name and is aligned with nothing."""
    texts: list[str] = []
    at = start
    while at < len(tokens) and at not in aligned and tokens[at].text in _TRAILERS:
        closing = _TRAILERS[tokens[at].text]
        end = at + 1
        if closing:
            level = 1
            while end < len(tokens) and level:
                level += (tokens[end].text in "([{") - (tokens[end].text in ")]}")
                end += 1
            if level:
                return texts
        else:
            end = min(end + 1, len(tokens))
        if any(k in aligned for k in range(at, end)):
            return texts
        texts += [token.text for token in tokens[at:end]]
        at = end
    return texts
