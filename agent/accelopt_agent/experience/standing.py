"""How a remembered pair stands: how like a kernel its slow side is, what its change did elsewhere, what is expected."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from accelopt_agent.experience.experience import TrackRecord, expected_log, item_of, track_record
from accelopt_memory.features import kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.outcomes import OutcomePrior
from accelopt_memory.records import Match, Pair

#: The most pairs that are returned, and how similar (0..1) the slow side is to a kernel that is asked about.
MOST, LEAST_ALIKE = 20, 0.15


@dataclass(frozen=True)
class PairStanding:
    """A pair with its ``similarity`` (0..1) to the kernel asked about (None: none was), the ``record`` of its change,
    and the ``expected`` time after over time before."""

    pair: Pair
    similarity: float | None
    record: TrackRecord
    expected: float


def standings_for_kernel(
    memory: Memory, text: str, kernel: str, bound: str | None, target: str
) -> list[PairStanding]:
    """Return the pairs that a search would try on a kernel, most similar first.

    Raises:
        ValueError: the text has no such kernel.
        MemoryUnavailableError
    """
    matches = memory.similar(kernel_features(text, kernel, bound), MOST, LEAST_ALIKE)
    return _standings(memory, matches, bound, target)


def standings_with_words(memory: Memory, words: str) -> list[PairStanding]:
    """Return the pairs that hold every one of the words, best first. Raises MemoryUnavailableError."""
    pairs = (memory.pair(hit.id) for hit in memory.search(words, MOST) if hit.kind == "pair")
    return _standings(memory, [(pair, None) for pair in pairs if pair is not None], None, "")


def standings_of(memory: Memory, pairs: Iterable[Pair]) -> list[PairStanding]:
    """Return how each of the pairs stands. Raises MemoryUnavailableError."""
    return _standings(memory, [(pair, None) for pair in pairs], None, "")


def _standings(
    memory: Memory, matches: Iterable[Match | tuple[Pair, None]], bound: str | None, target: str
) -> list[PairStanding]:
    priors: dict[str, OutcomePrior] = {}
    standings = []
    for one in matches:
        pair, similarity = (one.pair, one.score) if isinstance(one, Match) else one
        if pair.dialect not in priors:
            priors[pair.dialect] = memory.outcomes.prior(pair.dialect)
        prior, items = priors[pair.dialect], {item_of(pair), f"edit:{pair.edit}"}
        record = track_record(o for o in prior.outcomes if o.item in items)
        expected = math.exp(expected_log(pair, prior, bound, target or pair.target))
        standings.append(PairStanding(pair, similarity, record, expected))
    return standings
