"""Experience as plain data: changes that helped like kernels, and rewrites that failed there."""

from __future__ import annotations

from dataclasses import dataclass

from accelopt_agent.suggestions.suggestion import Speedup
from accelopt_memory.records import Pair, Trap
from accelopt_profiling.quantity import CounterMove


@dataclass(frozen=True)
class TrackRecord:
    """How many kernels an item was tried on, how many it ``helped``, on how many it ``failed`` or was undone."""

    tasks: int = 0
    helped: int = 0
    failed: int = 0


@dataclass(frozen=True)
class ExperienceItem:
    """A change that made a kernel faster.

    ``item`` is what its outcomes are added up under (``outcomes.Outcome``), ``similarity`` (0..1) that of its slow side
    with the kernel asked about (None: not compared), ``change`` the lines of difference, of which ``left_out`` are not
    shown.
    """

    pair: Pair
    item: str
    similarity: float | None
    change: tuple[str, ...]
    left_out: int
    gain: Speedup | None
    record: TrackRecord

    @property
    def summary(self) -> str:
        return self.pair.summary

    @property
    def bounds(self) -> tuple[str | None, str | None]:
        """What limits the slow and the fast side."""
        return self.pair.bound, self.pair.fast_bound

    @property
    def moved(self) -> tuple[CounterMove, ...]:
        return self.pair.moved


@dataclass(frozen=True)
class KnownFailure:
    """A rewrite that failed, or got slower, on a kernel that looks like the one asked about."""

    trap: Trap
    similarity: float

    @property
    def what(self) -> str:
        return self.trap.summary or ", then ".join(self.trap.steps or (self.trap.origin,))

    @property
    def cause(self) -> str:
        return f"{self.trap.code}: {self.trap.message}" if self.trap.message else self.trap.code


@dataclass(frozen=True)
class KernelExperience:
    """What a role is told, the most useful first."""

    items: tuple[ExperienceItem, ...] = ()
    failures: tuple[KnownFailure, ...] = ()
