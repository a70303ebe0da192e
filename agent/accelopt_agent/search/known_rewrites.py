"""Leaves out of a proposer's answer what a search has tried, or knows to fail."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node
from accelopt_agent.search.trial import Trial, VersionTexts, goes_back


class KnownRewrites:
    """All that was proposed in the search from ``root``, the steps that failed in it, and ``never_again``, the
    fingerprints of rewrites that were refused before it. What nothing remembered led to is compared with its like
    alone: a memory takes no rewrite and no step from the others."""

    def __init__(self, root: Node, texts: VersionTexts) -> None:
        self._texts = texts
        self.never_again: set[str] = set()
        self._adding = threading.Lock()
        self._seen = {(texts.fingerprints(root.text)[0], False)}
        self._failed_steps: set[tuple[tuple[str, str], bool]] = set()

    def new_trials(self, candidates: Sequence[Candidate], node: Node) -> list[Trial]:
        """Return the candidates as rewrites of the original, without those that are known already."""
        return [trial for c in candidates if (trial := self._new_trial(c, node)) is not None]

    def _new_trial(self, candidate: Candidate, node: Node) -> Trial | None:
        try:
            fingerprint, rewrite = self._texts.fingerprints(candidate.text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        remembered = node.remembered or candidate.origin.startswith("memory:")
        trial = Trial(candidate, node, rewrite, remembered)
        if rewrite in self.never_again or self.fails(trial.step, node):
            return None
        if candidate.origin.startswith("rule:") and goes_back(candidate.text, node):
            return None
        with self._adding:  # two answers may be read at a time
            if {(fingerprint, False), (fingerprint, remembered)} & self._seen:
                return None
            self._seen.add((fingerprint, remembered))
        return trial

    def add_failed_step(self, step: tuple[str, str], version: Node) -> None:
        """Note that the step failed on ``version``: where that is a remembered one, this says nothing of others."""
        self._failed_steps.add((step, version.remembered))

    def fails(self, step: tuple[str, str], version: Node | None) -> bool:
        """Return whether the step is known to fail on ``version``."""
        remembered = version is not None and version.remembered
        return bool({(step, False), (step, remembered)} & self._failed_steps)
