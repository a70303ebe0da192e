"""Orders rewrites by what they promise: one of the queues that the hybrid search takes them from."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_agent.search.node import Node
from accelopt_agent.search.strategies.step_expectation import WORTHWHILE, StepExpectation
from accelopt_agent.search.trial import Trial


class TrialQueue:
    """Gives first what is expected to beat the fastest version, then what promises nothing, until ``patience`` such
    tries in a row have brought no faster version."""

    def __init__(self, expectation: StepExpectation, patience: int) -> None:
        self.expectation, self._patience = expectation, patience
        self._tries_in_vain = 0
        self._explored = ""

    @property
    def patient(self) -> bool:
        return self._tries_in_vain < self._patience

    def renew(self) -> None:
        """Allow one more try of what promises nothing."""
        self._tries_in_vain = min(self._tries_in_vain, max(0, self._patience - 1))

    def promising(self, ideas: Sequence[Trial], fastest: Node) -> Trial | None:
        """Return the rewrite that promises most, if that beats the ``fastest`` version."""
        promises = self._promises(ideas)
        promise, k = min(promises, default=(fastest.us, -1))
        return ideas[k] if promise < fastest.us else None

    def least_tried(self, ideas: Sequence[Trial]) -> Trial | None:
        """Return a rewrite of the rule that was tried least, in turn on the version that was changed least and on the
        one that promises most."""
        if not ideas or not self.patient:
            return None
        _, _, _, k = min((*self._last_resort(ideas[k]), promise, k) for promise, k in self._promises(ideas))
        self._explored = ideas[k].fingerprint
        return ideas[k]

    def add_result(self, trial: Trial, node: Node, fastest: Node) -> None:
        """Take in what became of ``trial``; ``fastest`` was the fastest version before."""
        if node.may_be_built_upon and node.us < fastest.us * (1 - WORTHWHILE):
            self._tries_in_vain = 0
        elif trial.fingerprint == self._explored:
            self._tries_in_vain += 1
        self.expectation.add_result(trial, node)

    def _promises(self, ideas: Sequence[Trial]) -> list[tuple[float, int]]:
        return [(i.parent.us * self.expectation.ratio(i), k) for k, i in enumerate(ideas)]

    def _last_resort(self, trial: Trial) -> tuple[int, int]:
        """Return how often its rule was tried and, each other time, how many steps its version is from the original."""
        tries = self.expectation.tries(trial)
        return tries, 0 if tries % 2 else trial.parent.depth
