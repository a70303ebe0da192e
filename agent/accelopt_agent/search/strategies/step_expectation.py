"""What is expected of a step: how it changed the time of this kernel's versions, and of others' in earlier searches."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_agent.search.node import ROUNDING, Node
from accelopt_agent.search.trial import Trial
from accelopt_memory.outcomes import OutcomePrior

#: What is hoped of a rule's step that was never tried: the first of an answer, the last, and of anything at all.
FIRST, LAST, BEST_HOPE = 0.80, 0.95, 0.80

#: No more than this is expected of a step that was never tried on this kernel.
HOPELESS = 0.99

#: A step that changed the time by less than this once is tried once more, on the fastest version, when nothing
#: else is left.
NEUTRAL = 0.02

#: A gain by less than this share of the time does not count as one where tries are counted that brought none.
WORTHWHILE = 0.005

#: A rule that brought nothing so often in a row, on versions of this kernel that the same unit limits, has no turn
#: there while anything else promises something.
TRIES_IN_VAIN = 3


class StepExpectation:
    """Time after over time before, per step, per rule and per what bounds the version it was tried on; ``prior`` is
    what earlier searches let expect on ``target``."""

    def __init__(self, prior: OutcomePrior | None = None, target: str = "") -> None:
        self._prior, self._target = prior, target
        self._hopes: dict[str, float] = {}
        self._ratios: dict[tuple[str, str], list[tuple[float, str | None]]] = {}
        self._failed: dict[str, int] = {}
        self._of_rule: dict[str, list[float]] = {}
        self._by_bound: dict[
            tuple[str, str | None], list[float]
        ] = {}  # as _of_rule, by what limits the version
        self._in_vain: dict[tuple[str, str | None], int] = {}  # by rule and bound: tries since the last gain

    def add_proposals(self, trials: Sequence[Trial]) -> None:
        """Take what came first in an answer as most promising."""
        for rank, trial in enumerate(trials):
            self._hopes[trial.fingerprint] = FIRST + (LAST - FIRST) * rank / max(1, len(trials))

    def add_result(self, trial: Trial, node: Node) -> None:
        if node.failure is not None:
            self._failed[trial.candidate.origin] = self._failed.get(trial.candidate.origin, 0) + 1
            return
        if trial.parent.failure is not None:
            return
        ratio = node.us / trial.parent.us
        self._ratios.setdefault(trial.step, []).append((ratio, trial.parent.measurement.bound))
        self._of_rule.setdefault(trial.candidate.origin, []).append(ratio)
        rule = trial.candidate.origin, trial.parent.measurement.bound
        self._by_bound.setdefault(rule, []).append(ratio)
        self._in_vain[rule] = 0 if ratio < 1 - WORTHWHILE else self._in_vain.get(rule, 0) + 1

    def tries(self, trial: Trial) -> int:
        """Return how often the rule of ``trial`` was tried, where it failed too."""
        origin = trial.candidate.origin
        return len(self._of_rule.get(origin, [])) + self._failed.get(origin, 0)

    def ratio(self, trial: Trial) -> float:
        """Return the time after over the time before to be expected of ``trial``; 1 or more: not worth trying."""
        history, limit = self._ratios.get(trial.step), trial.parent.measurement.bound
        if not history or (
            history[-1][0] >= 1 - ROUNDING and history[-1][1] != limit
        ):  # nothing is known of such a version
            rule = trial.candidate.origin, limit
            if self._in_vain.get(rule, 0) >= TRIES_IN_VAIN and trial.candidate.origin.startswith("rule:"):
                return 1.0
            hope = self._hopes.get(trial.fingerprint, LAST)
            if self._prior is not None:
                tries = self._by_bound.get(rule, [])
                expected = self._prior.expected_here(trial.item, limit, self._target, hope, tries)
                hope = min(HOPELESS, expected)
            hope = max(hope, self._elsewhere(rule))
            return min(1.0, hope + 0.1 * self._failed.get(trial.candidate.origin, 0))
        ratio, _ = history[-1]
        if ratio < 1 - ROUNDING:
            return ratio
        return 1 - ROUNDING if ratio < 1 + NEUTRAL and len(history) < 2 else 1.0

    def _elsewhere(self, rule: tuple[str, str | None]) -> float:
        """Return the best ratio that any step of a rule reached on versions that the same unit limits, once two were
        tried: no more is expected of its other steps, so that a rule with many places that gains nothing waits
        behind one that has gained."""
        ratios = self._by_bound.get(rule, [])
        return min(*ratios, LAST) if len(ratios) > 1 and rule[0].startswith("rule:") else 0.0
