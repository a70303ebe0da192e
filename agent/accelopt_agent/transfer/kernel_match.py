"""Matches the slow side of a pair with another kernel: functions, lines, tokens, and what each name is called there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from accelopt_agent.syntax.token_lines import LogicalLine, TokenizedFunction, TokenizedSource, code_lines
from accelopt_agent.transfer.alignment import (
    Renaming,
    Votes,
    align_lines,
    align_tokens,
    elected,
    in_common,
    line_features,
    line_head,
)
from accelopt_agent.transfer.pair_edit import LinePlace

#: Rounds of aligning and voting: each knows the names that the one before has found.
ROUNDS = 3
#: How much two functions must have in common (0..1) to be taken for each other, and two lines in another order.
LEAST_FUNCTION, LEAST_LOOSE = 0.25, 0.8
#: Functions of more lines, multiplied, than this are not aligned: it would take seconds.
MOST_CELLS = 120_000


@dataclass
class BlockMatch:
    """One function of the slow side (or the module, ""), and its counterpart. ``lines`` maps the numbers of its lines
    in order, ``loose`` those that stand in another order."""

    name: str
    slow: Sequence[LogicalLine]
    target: Sequence[LogicalLine]
    target_name: str
    lines: dict[int, int] = field(default_factory=dict)
    loose: dict[int, int] = field(default_factory=dict)
    renaming: Renaming = field(default_factory=lambda: Renaming({}, {}))


@dataclass
class KernelMatch:
    """``blocks`` are the matched functions by their name on the slow side, the module under ""."""

    blocks: dict[str, BlockMatch]
    shared: Renaming

    def counterpart(self, place: LinePlace) -> tuple[BlockMatch, int] | None:
        """Return where a line of the slow side stands in the other kernel."""
        block = self.blocks.get(place[0])
        if block is None:
            return None
        at = block.lines.get(place[1], block.loose.get(place[1]))
        return None if at is None else (block, at)


def match_kernels(
    slow: TokenizedSource, kernel: str, target: TokenizedSource, other: str, touched: Set[str] = frozenset()
) -> KernelMatch | None:
    """Match ``kernel`` of ``slow`` with ``other`` of ``target``, and with it device functions, what launches them, and
    the ``touched`` functions of the slow side; None where a kernel is missing or too large."""
    paired = _paired_functions(slow, kernel, target=target, other=other, touched=touched)
    if paired is None or sum(len(a.lines) * len(b.lines) for a, b in paired) > MOST_CELLS:
        return None
    blocks = {
        one.name: BlockMatch(one.name, code_lines(one.lines), code_lines(two.lines), two.name)
        for one, two in paired
    }
    blocks[""] = BlockMatch(
        "",
        code_lines([slow.lines[k] for k in slow.module]),
        code_lines([target.lines[k] for k in target.module]),
        "",
    )
    target_names = {name: _names(block.target) for name, block in blocks.items()}
    functions = {one.name: (two.name,) for one, two in paired if "." not in one.name + two.name}
    shared = Renaming(functions, {})
    for _ in range(ROUNDS):
        votes: dict[str, Votes] = {}
        for name, block in blocks.items():
            renames = block.renaming.single | {k: v[0] for k, v in functions.items()}
            block.lines = dict(align_lines(block.slow, block.target, renames))
            votes[name] = _votes(block, renames)
        pooled = Votes().merged(votes.values())
        elected_names = elected(pooled, None, frozenset())
        shared = Renaming(
            {**elected_names.names, **functions},
            elected_names.numbers,
            frozenset().union(*target_names.values()),
        )
        for name, block in blocks.items():
            block.renaming = elected(votes[name], shared, target_names[name])
    for block in blocks.values():
        block.loose = _loose(block)
    return KernelMatch(blocks, shared)


def _paired_functions(
    slow: TokenizedSource, kernel: str, target: TokenizedSource, other: str, touched: Set[str]
) -> list[tuple[TokenizedFunction, TokenizedFunction]] | None:
    first, second = slow.function(kernel), target.function(other)
    if first is None or second is None:
        return None
    ones = [f for f in slow.functions if f is not first and (f.name in touched or _role(f, kernel) != "host")]
    twos = [f for f in target.functions if f is not second]
    looks = {id(f): _function_features(f) for f in (*ones, *twos)}
    scored = sorted(
        (
            (-in_common(looks[id(a)], looks[id(b)]), i, j)
            for i, a in enumerate(ones)
            for j, b in enumerate(twos)
            if _role(a, kernel) == _role(b, other)
        )
    )
    pairs, used = [(first, second)], (set[int](), set[int]())
    for score, i, j in scored:
        if -score >= LEAST_FUNCTION and i not in used[0] and j not in used[1]:
            used[0].add(i)
            used[1].add(j)
            pairs.append((ones[i], twos[j]))
    return pairs


def _role(function: TokenizedFunction, kernel: str) -> str:
    if any(
        t.text.endswith("jit")
        for line in function.lines[:2]
        for t in line.tokens
        if line.tokens[0].text == "@"
    ):
        return "device"
    return "launch" if any(t.text == kernel for line in function.lines for t in line.tokens) else "host"


def _function_features(function: TokenizedFunction) -> dict[tuple[str, str], float]:
    total: dict[tuple[str, str], float] = {}
    for line in function.lines:
        for key, weight in line_features(line, {}).items():
            total[key] = total.get(key, 0.0) + weight
    return total


def _names(lines: Sequence[LogicalLine]) -> frozenset[str]:
    return frozenset(t.text for line in lines for t in line.tokens if t.kind == "local")


def _votes(block: BlockMatch, renames: Mapping[str, str]) -> Votes:
    votes = Votes()
    for i, j in block.lines.items():
        left, right = block.slow[i].tokens, block.target[j].tokens
        votes.add(left, right, align_tokens(left, right, renames))
    return votes


def _loose(block: BlockMatch) -> dict[int, int]:
    """Match what is left of both sides where the lines say the same in another order."""
    names = block.renaming.single
    own_names = {name: name for name in names.values()}
    open_lines = [j for j in range(len(block.target)) if j not in set(block.lines.values())]
    pairs: dict[int, int] = {}
    for i, line in enumerate(block.slow):
        if i in block.lines:
            continue
        mine, head = line_features(line, names), line_head(line)
        scored = [
            (in_common(mine, line_features(block.target[j], own_names)), -j)
            for j in open_lines
            if line_head(block.target[j]) == head
        ]
        score, j = max(scored, default=(0.0, 0))
        if score >= LEAST_LOOSE:
            pairs[i] = -j
            open_lines.remove(-j)
    return pairs
