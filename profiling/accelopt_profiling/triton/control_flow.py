"""Natural loops of a control flow graph."""

from __future__ import annotations

from collections.abc import Sequence


def natural_loops(successors: Sequence[Sequence[int]]) -> dict[int, frozenset[int]]:
    """The loops of a graph whose entry is block 0: for each loop header the blocks of its loop, itself included.

    A loop is what can reach an edge into a block that dominates the edge's origin (Aho, Lam, Sethi and Ullman,
    "Compilers", section 9.6). Blocks that cannot be reached from the entry belong to no loop.
    """
    count = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for block, following in enumerate(successors):
        for other in following:
            predecessors[other].append(block)
    dominators = _dominators(successors, predecessors)
    loops: dict[int, set[int]] = {}
    for block, following in enumerate(successors):
        for header in following:
            if block in dominators and header in dominators[block]:
                body = loops.setdefault(header, {header})
                waiting = [block]
                while waiting:
                    inside = waiting.pop()
                    if inside not in body:
                        body.add(inside)
                        waiting.extend(p for p in predecessors[inside] if p in dominators)
    return {header: frozenset(body) for header, body in loops.items()}


def _dominators(
    successors: Sequence[Sequence[int]], predecessors: Sequence[Sequence[int]]
) -> dict[int, set[int]]:
    reached: list[int] = []
    waiting, seen = [0] if successors else [], {0}
    while waiting:
        block = waiting.pop()
        reached.append(block)
        for other in successors[block]:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    everything = set(reached)
    found = {block: {block} if block == 0 else set(everything) for block in reached}
    changed = True
    while changed:
        changed = False
        for block in reached:
            if block == 0:
                continue
            above = [found[p] for p in predecessors[block] if p in found]
            new = {block} | set.intersection(*above)
            if new != found[block]:
                found[block], changed = new, True
    return found
