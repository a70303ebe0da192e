"""What a replayed loop leaves is compared with what Python's iterations leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from accelopt_profiling.nki.data.instruction import TracedInstruction
from accelopt_profiling.nki.replay.loop_replay import RecordedIteration


def fields_of(instructions: Iterable[TracedInstruction]) -> list[Any]:
    """Return every field of every instruction; places by the order in which they appear."""
    places: dict[Any, int] = {}

    def numbered(regions: Any) -> list[Any]:
        return [
            (places.setdefault(b, len(places)), b.memory, b.shape, b.name, b.line, tuple(box))
            for b, box in regions
        ]

    return [
        (*i.cost(), i.number, i.core, i.pattern, numbered(i.reads), numbered(i.writes)) for i in instructions
    ]


@contextmanager
def counted_replays() -> Iterator[list[int]]:
    """Give a list that has an entry, how far ahead, for each iteration that is replayed until the block ends."""
    ahead: list[int] = []
    replay = RecordedIteration.replay

    def counting(self: RecordedIteration, iterations: int) -> None:
        ahead.append(iterations)
        replay(self, iterations)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordedIteration, "replay", counting)
        yield ahead
