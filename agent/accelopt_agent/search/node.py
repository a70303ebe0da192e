"""A version of the kernel in the search tree: the original or a candidate, with all that is known about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.whole_time import AT_SCALE, REST, REST_AT_SCALE, at_scale, time_of, total
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.quantity import Known
from accelopt_profiling.timing.statistics import TimeComparison

#: Relative difference between two latencies that may come from adding the same numbers in another order.
ROUNDING = 1e-6

#: What a version that ran to its end and gave a wrong result failed with.
_NEAR = frozenset({"wrong-result", "uninitialised-read"})

#: What no other text of the same idea mends: limits that were met, the host's and the problem's faults, and what
#: was done on purpose.
_BEYOND_REPAIR = frozenset(
    {"timeout", "memory", "out-of-memory", "too-much-output", "missing-package", "not-measured", "bad-answer",
     "gate-failed", "incomplete", "not-judged", "not-run", "refused", "patches", "reads-the-gate", "native-code",
     "background-work", "obfuscated", "ends-the-process", "reads-files", "reads-environment", "writes-outside",
     "reaches-out", "tampered", "mode-branch"}
)  # fmt: skip


@dataclass(frozen=True)
class Failure:
    """The reason why a version cannot be used: the code of a finding or of the gate, and one line. ``cases`` says on
    which of the gate's cases it was right and on which not, with their shapes."""

    code: str
    message: str
    cases: str = ""

    @property
    def near(self) -> bool:
        """It ran to its end with a wrong result, so a small repair may do."""
        return self.code in _NEAR

    @property
    def mendable(self) -> bool:
        """Another text of the same idea may not have it."""
        return self.code not in _BEYOND_REPAIR and not self.code.startswith("problem-")


@dataclass(eq=False)
class Node:
    """``kernel`` is the kernel in ``text``; ``candidate`` is None for the original.

    ``step`` is origin and summary of the one rewrite that made it from ``parent``; ``fingerprint`` identifies the whole
    rewrite of the original. ``verdict`` is the gate's verdict, None before it was asked; ``failure`` says why the
    version could not be run or was refused; ``repair`` marks the repair of a parent that had failed, ``remembered``
    what a memory led to (``Trial.remembered``). ``asked`` counts the queries to each proposer about this node.
    ``comparison`` is with the original, in one session on a device. Of the original, ``others`` are the file's other
    kernels as far as they were measured, and ``rest`` is their time, as ``compared`` is, from when it is needed on.
    """

    text: str
    kernel: Kernel
    measurement: KernelMeasurement
    candidate: Candidate | None = None
    parent: Node | None = None
    step: tuple[str, str] | None = None
    fingerprint: str = ""
    clearly_faster: bool = False
    verdict: Literal["accepted", "refused"] | None = None
    failure: Failure | None = None
    comparison: TimeComparison | None = None
    repair: bool = False
    remembered: bool = False
    rest: Latency = field(default_factory=Latency)
    others: tuple[KernelMeasurement, ...] = ()
    asked: dict[str, int] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)

    @property
    def compared_at_scale(self) -> bool:
        """The versions of this search are compared as parts of a much larger launch: by the estimate the original's
        time is mostly that of launching it, which no rewrite changes."""
        original = self.root.measurement
        estimated = original.latency.known is Known.ESTIMATED
        return estimated and original.bound == "launch" and AT_SCALE in original.quantities

    @property
    def changes_more(self) -> bool:
        """Its time is that of all kernels that the problem launches, since it changes more than one kernel."""
        return REST in self.measurement.quantities

    @property
    def compared(self) -> Latency:
        """The time by which versions are compared: that of the launch, or of its share in a much larger one."""
        launch_time = self.measurement.quantities.get(AT_SCALE)
        if self.measurement.latency.us is None or launch_time is None or not self.compared_at_scale:
            return self.measurement.latency
        return Latency(launch_time.value, launch_time.low, launch_time.high, launch_time.known)

    @property
    def together(self) -> Latency:
        """The time that stands beside one of all that is launched: that of all launches of the kernel."""
        if self.changes_more:
            return self.compared
        return at_scale(self.measurement) if self.compared_at_scale else time_of(self.measurement)

    def original_compared(self, plain: bool = False) -> Latency:
        """Return the original's time that ``compared`` stands beside: of the kernel, or of all that is launched;
        ``plain``: that of the launch in any case."""
        root = self.root
        scaled = root.compared_at_scale and not plain
        rest = self.measurement.quantities.get(REST_AT_SCALE if scaled else REST)
        if rest is None:
            return root.measurement.latency if plain else root.compared
        own = at_scale(root.measurement) if scaled else time_of(root.measurement)
        return total([own, Latency(rest.value, rest.low, rest.high, rest.known)])

    @property
    def us(self) -> float:
        """The time by which it is ranked, in microseconds; infinite when unknown.

        Once a version was measured as a whole, the others have the time of the original's other kernels added.
        """
        rest = self.root.rest.us
        us = (self.compared if rest is None else self.together).us
        if us is None:
            return float("inf")
        return us if self.changes_more else us + (rest or 0.0)

    def beside(self, other: Node) -> tuple[Latency, Latency]:
        """Return the times of this version and of ``other`` that can be compared: of the kernel, or where one of them
        changes more, of all that is launched."""
        times = [self.compared, other.compared]
        if self.changes_more != other.changes_more:
            times = [
                n.together if n.changes_more else total([n.together, self.root.rest]) for n in (self, other)
            ]
        return times[0], times[1]

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def root(self) -> Node:
        return self if self.parent is None else self.parent.root

    @property
    def way(self) -> tuple[Node, ...]:
        """The versions from this one to the original, both included."""
        return (self,) if self.parent is None else (self, *self.parent.way)

    @property
    def gained(self) -> bool:
        """It is the original, or faster than the version it was made from, as far as that is known."""
        return self.parent is None or self.faster_than(self.parent)

    def faster_than(self, other: Node) -> bool:
        """Return whether this one is faster by more than the rounding of a sum."""
        return self.us < other.us * (1 - ROUNDING)

    def walk(self) -> Iterator[Node]:
        """Yield this node and all its descendants."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def steps(self) -> tuple[str, ...]:
        return self.candidate.steps if self.candidate else ()

    @property
    def failures(self) -> tuple[Node, ...]:
        """The failed versions from the last one that ran to this node, this one first; none where it ran."""
        before = self.parent.failures if self.parent is not None else ()
        return (self, *before) if self.failure is not None else ()

    @property
    def made_by_rules(self) -> bool:
        """All rewrites from the original to this node are rules, which are meant to keep what the kernel computes."""
        return all(step.startswith("rule:") for step in self.steps)

    @property
    def may_be_built_upon(self) -> bool:
        """Sound, and made by rules alone or accepted by the gate."""
        return self.sound and (self.made_by_rules or self.verdict == "accepted")

    @property
    def sound(self) -> bool:
        """It ran, and the gate refused none of the versions from the original to this node, unless it accepted this
        one."""
        if self.verdict is not None:
            return self.verdict == "accepted"
        return self.failure is None and (self.parent is None or self.repair or self.parent.sound)
