"""A candidate that passed the gate and is offered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import CounterMove, Known

#: Reasons for a rejection that a person can give by one key, their first letter.
REASONS = ("wrong", "slower here", "unreadable", "not now")

#: Versions whose times differ by no more than this share are equally fast: of them the one with the fewest steps comes
#: first, as every further step is one more thing for a person to review.
EQUAL = 0.01


@dataclass(frozen=True)
class Speedup:
    """Baseline time over candidate time, with its interval.

    Known as badly as the worse of the two. ``at`` says what for, where that is not the profiled case ("larger
    batches").
    """

    value: float
    low: float
    high: float
    known: Known
    at: str = ""


@dataclass(frozen=True)
class VersionStep:
    """One rewrite on the way to a version: who made it, what it does, the times of the versions before and after it.

    ``id`` is the suggestion of the version after it, which is offered where the gate has accepted it.
    """

    origins: tuple[str, ...]
    summary: str
    before: Latency
    after: Latency
    id: str


@dataclass(frozen=True)
class Suggestion:
    """A checked rewrite.

    ``base_hash`` is the content hash of the kernel it was made for, ``base_text`` and ``text`` the whole file before
    and after; ``diff`` is the unified diff between them. ``slow`` and ``fast`` are the latencies of both on ``target``,
    from ``host``; ``bound`` is what limits the slow one, ``fast_bound`` the fast one, if known, and ``moved`` are the
    counters that changed most. ``launches`` of the run were compared one by one; none is slower. ``case``
    is what both times are stated for; ``way`` are the steps with what each gained, oldest first. Both are empty in one
    of an older version.
    """

    id: str
    run: str
    file: str
    kernel: str
    dialect: str
    base_hash: str
    base_text: str
    text: str
    diff: str
    origin: str
    summary: str
    speedup: Speedup
    slow: Latency
    fast: Latency
    gate: Verdict
    target: str
    host: str
    steps: tuple[str, ...] = ()
    bound: str | None = None
    fast_bound: str | None = None
    moved: tuple[CounterMove, ...] = ()
    launches: int = 0
    case: str = ""
    way: tuple[VersionStep, ...] = ()

    @property
    def fast_hashes(self) -> set[str]:
        """The content hashes of the suggested kernel.

        Where another one stands in its place, of all kernels that the base does not have.
        """
        fast, before = (find_kernels(t).kernels for t in (self.text, self.base_text))
        own = {k.content_hash for k in fast if k.name == self.kernel}
        return own or {k.content_hash for k in fast} - {k.content_hash for k in before}


def best_first(suggestions: Iterable[Suggestion]) -> list[Suggestion]:
    """Return the suggestions with the largest speedup first.

    Of those that are equally fast, the one with the fewest steps.
    """
    waiting = sorted(suggestions, key=lambda s: -s.speedup.value)
    ranked: list[Suggestion] = []
    while waiting:
        least = waiting[0].speedup.value / (1 + EQUAL)
        equal = [s for s in waiting if s.speedup.value >= least]
        ranked += sorted(equal, key=lambda s: len(s.steps))
        waiting = waiting[len(equal) :]
    return ranked
