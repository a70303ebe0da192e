"""One version of the kernel in the search: the original or a candidate, with what is known about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from accelopt_agent.candidate import Candidate
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.timing.comparing import Comparison

#: Relative difference between two latencies that may come from adding the same numbers in another order.
ROUNDING = 1e-6

#: What a version that ran to its end and gave a wrong result failed with.
_NEAR = frozenset({"wrong-result", "uninitialised-read"})


@dataclass(frozen=True)
class Failure:
    """Why a version is of no use: a finding's or a gate's code, and one line."""

    code: str
    message: str

    @property
    def near(self) -> bool:
        """It ran to its end: what it lacks may be little."""
        return self.code in _NEAR


@dataclass(eq=False)
class Node:
    """``kernel`` is the kernel as it stands in ``text``; ``candidate`` is None for the original.

    ``step`` is origin and summary of the one rewrite that made it from ``parent``; ``fingerprint`` names what
    became of the original on the way. ``proof`` is what the gate said, None when it was not asked; ``failure`` why
    it could not be run or was refused; ``repair`` tells that it repairs a parent that had failed. ``asked`` counts
    how often each proposer was asked about this node. ``comparison`` is with the original, in one session on a device.
    """

    text: str
    kernel: Kernel
    measurement: KernelMeasurement
    candidate: Candidate | None = None
    parent: Node | None = None
    step: tuple[str, str] | None = None
    fingerprint: str = ""
    clearly_faster: bool = False
    proof: Literal["accepted", "refused"] | None = None
    failure: Failure | None = None
    comparison: Comparison | None = None
    repair: bool = False
    asked: dict[str, int] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)

    @property
    def us(self) -> float:
        """Its time in microseconds, known as its measurement says; infinite when unknown."""
        us = self.measurement.latency.us
        return float("inf") if us is None else us

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def root(self) -> Node:
        return self if self.parent is None else self.parent.root

    @property
    def gained(self) -> bool:
        """It is the original, or faster than the version it was made from (as far as that is known)."""
        return self.parent is None or self.faster_than(self.parent)

    def faster_than(self, other: Node) -> bool:
        """By more than the rounding of a sum."""
        return self.us < other.us * (1 - ROUNDING)

    def walk(self) -> Iterator[Node]:
        """This node and all that came of it."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def steps(self) -> tuple[str, ...]:
        return self.candidate.steps if self.candidate else ()

    @property
    def made_by_rules(self) -> bool:
        """Every rewrite on the way here is one of the catalogue, which means to keep what the kernel computes."""
        return all(step.startswith("rule:") for step in self.steps)

    @property
    def may_be_built_upon(self) -> bool:
        """Others' edits are built upon only after the gate has accepted them."""
        return self.sound and (self.made_by_rules or self.proof == "accepted")

    @property
    def sound(self) -> bool:
        """It ran, and no version on the way here was refused by the gate, unless this one was accepted itself."""
        if self.proof is not None:
            return self.proof == "accepted"
        return self.failure is None and (self.parent is None or self.repair or self.parent.sound)
