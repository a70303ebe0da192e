"""Finds what the names and numbers of one kernel are called in another, by majority vote over aligned tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from accelopt_agent.syntax.token_lines import Token

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
        first = Token(kind, image[0], image[0], token.space, token.keyword)
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
