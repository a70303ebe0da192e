"""Loads the measurements of both versions of a suggestion: the original and the rewrite."""

from __future__ import annotations

from dataclasses import dataclass

from accelopt_agent.search.recorder import BASELINE, CANDIDATE_TRIED
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_agent.syntax.fingerprint import rewrite_fingerprint
from accelopt_memory.memory import Memory
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.plain import from_plain
from accelopt_profiling.quantity import CounterMove, Quantity

#: So many of the counters that moved are kept with a pair.
MOVES_KEPT = 6


@dataclass(frozen=True)
class MeasuredVersions:
    """The measurements that the search compared. None where the memory does not hold one (any more)."""

    slow: KernelMeasurement | None = None
    fast: KernelMeasurement | None = None

    def moved(self) -> list[tuple[str, Quantity, Quantity]]:
        """Return the counters that differ, each with both values.

        The one that changed most, relatively, first.
        """
        pairs = [(name, a, b) for name, a, b in self._both() if a.value != b.value]
        return sorted(pairs, key=lambda pair: -_relative(pair[1], pair[2]))

    def moves(self, most: int = MOVES_KEPT) -> tuple[CounterMove, ...]:
        """Return the ``most`` counters that changed most, as a pair keeps them."""
        counters = [(name, a, b) for name, a, b in self.moved() if a.known is b.known][:most]
        return tuple(
            CounterMove(name, float(a.value or 0.0), after=float(b.value or 0.0), unit=a.unit, known=a.known)
            for name, a, b in counters
        )

    def unmoved(self) -> list[str]:
        """Return the names of the counters that are the same in both and not zero."""
        return [name for name, a, b in self._both() if a.value == b.value and a.value]

    def _both(self) -> list[tuple[str, Quantity, Quantity]]:
        if self.slow is None or self.fast is None:
            return []
        slow, fast = self.slow.quantities, self.fast.quantities
        pairs = ((name, slow[name], fast[name]) for name in slow if name in fast)
        return [(n, a, b) for n, a, b in pairs if a.value is not None and b.value is not None]


def measured_versions(memory: Memory, suggestion: Suggestion) -> MeasuredVersions:
    """Load the measurements that the suggestion's run recorded of both versions.

    Raises:
        MemoryUnavailableError: the memory cannot be read.
    """
    try:
        rewrite = rewrite_fingerprint(suggestion.base_text, suggestion.text, suggestion.kernel)
    except (SyntaxError, ValueError, RecursionError):
        rewrite = ""
    slow: KernelMeasurement | None = None
    fast: KernelMeasurement | None = None
    for event in memory.run_log.events(suggestion.run):
        try:
            if event.kind == BASELINE and event.data["kernel"] == suggestion.kernel:
                slow = from_plain(KernelMeasurement, event.data["measurement"])
            elif event.kind == CANDIDATE_TRIED and event.key == rewrite:
                fast = from_plain(KernelMeasurement, event.data["measurement"])
        except (KeyError, TypeError, ValueError):
            continue  # written by another version
    return MeasuredVersions(slow, fast)


def _relative(before: Quantity, after: Quantity) -> float:
    a, b = before.value or 0.0, after.value or 0.0
    return abs(b - a) / max(abs(a), abs(b))
