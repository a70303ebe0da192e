"""How well similarity finds the rewrite that helped: each pair is asked of all the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_memory.records import Pair
from accelopt_memory.similarity import similarity


@dataclass(frozen=True)
class Recall:
    """``asked`` counts the pairs that share a rewrite with another one of a different kernel text: for the
    rest there is nothing to find. ``hits`` counts those where such a pair is among the nearest
    ``neighbours``; the reciprocal rank is 1 when it is the nearest, 1/2 when it is the second, averaged
    over ``asked`` (0 when nothing was asked).
    """

    pairs: int
    asked: int
    neighbours: int
    hits: int
    mean_reciprocal_rank: float


def recall(pairs: Sequence[Pair], neighbours: int) -> Recall:
    """Leave-one-out over ``pairs``; versions of the same kernel text never count as each other's
    neighbours."""
    asked = hits = 0
    ranks = 0.0
    for pair in pairs:
        others = [o for o in pairs if o.slow_hash != pair.slow_hash and o.dialect == pair.dialect]
        wanted = set(pair.steps or (pair.origin,))
        if not any(wanted & set(o.steps or (o.origin,)) for o in others):
            continue
        asked += 1
        near = sorted(others, key=lambda o: (-similarity(pair.features, o.features), o.id))
        rank = next(i for i, o in enumerate(near, 1) if wanted & set(o.steps or (o.origin,)))
        hits += rank <= neighbours
        ranks += 1 / rank
    return Recall(len(pairs), asked, neighbours, hits, ranks / asked if asked else 0.0)
