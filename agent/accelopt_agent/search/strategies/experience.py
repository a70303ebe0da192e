"""What the steps tried so far did to this kernel's time, and so what to expect of them elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_agent.search.node import ROUNDING, Node
from accelopt_agent.search.trial import Trial

#: What is hoped of a rule's step that was never tried: the first of an answer, the last, and of anything at all.
FIRST, LAST, BEST_HOPE = 0.80, 0.95, 0.80

#: A step that changed the time by less than this once is tried once more, on the fastest version, when nothing
#: else is left.
NEUTRAL = 0.02


class Experience:
    """Time after over time before, per step, per rule and per what bounds the version it was tried on."""

    best_hope = BEST_HOPE

    def __init__(self) -> None:
        self._hopes: dict[int, float] = {}
        self._ratios: dict[tuple[str, str], list[tuple[float, str | None]]] = {}
        self._failed: dict[str, int] = {}
        self._of_rule: dict[str, list[float]] = {}

    def proposed(self, trials: Sequence[Trial]) -> None:
        """Take what came first in an answer as most promising."""
        for rank, trial in enumerate(trials):
            self._hopes[id(trial)] = FIRST + (LAST - FIRST) * rank / max(1, len(trials))

    def tried(self, trial: Trial, node: Node) -> None:
        if node.failure is not None:
            self._failed[trial.candidate.origin] = self._failed.get(trial.candidate.origin, 0) + 1
            return
        if trial.parent.failure is not None:
            return
        ratio = node.us / trial.parent.us
        self._ratios.setdefault(trial.step, []).append((ratio, trial.parent.measurement.bound))
        self._of_rule.setdefault(trial.candidate.origin, []).append(ratio)

    def ratio(self, trial: Trial) -> float:
        """Time after over time before to be expected of ``trial``; 1 or more: not worth trying."""
        known = self._ratios.get(trial.step)
        if not known:
            hope = max(self._hopes.get(id(trial), LAST), self._elsewhere(trial.candidate.origin))
            return min(1.0, hope + 0.1 * self._failed.get(trial.candidate.origin, 0))
        ratio, bound = known[-1]
        if ratio < 1 - ROUNDING:
            return ratio
        if bound != trial.parent.measurement.bound:
            return LAST  # another unit limits this version
        return 1 - ROUNDING if ratio < 1 + NEUTRAL and len(known) < 2 else 1.0

    def _elsewhere(self, origin: str) -> float:
        """What a rule's best step gained, once two were tried: no more is hoped of its others, so that a rule with many
        places that gains nothing waits behind what has gained."""
        ratios = self._of_rule.get(origin, [])
        return min(*ratios, LAST) if len(ratios) > 1 and origin.startswith("rule:") else 0.0
