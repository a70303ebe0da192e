"""Leaves out of a proposer's answer what a search has tried, or knows to fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_agent.candidate import Candidate
from accelopt_agent.search.node import Node
from accelopt_agent.search.trial import Trial, VersionTexts, goes_back


@dataclass(frozen=True)
class Proposal:
    """A proposed ``trial``, and the fingerprint of its whole file."""

    trial: Trial
    file: str


class KnownRewrites:
    """All that was proposed in the search from ``root``, the steps that failed in it, and ``never_again``, the
    fingerprints of rewrites that were refused before it. What nothing remembered led to is compared with its like
    alone: a memory takes no rewrite and no step from the others."""

    def __init__(self, root: Node, texts: VersionTexts) -> None:
        self._texts = texts
        self.never_again: set[str] = set()
        self._seen = {(texts.fingerprints(root.text)[0], False)}
        self._failed_steps: set[tuple[tuple[str, str], bool]] = set()

    def read(self, candidates: Sequence[Candidate], node: Node) -> list[Proposal]:
        """Return the candidates as rewrites of the original, without those that do not parse or lead back. Depends on
        nothing that is known, so that answers may be read side by side."""
        return [trial for c in candidates if (trial := self._read(c, node)) is not None]

    def _read(self, candidate: Candidate, node: Node) -> Proposal | None:
        try:
            file, rewrite = self._texts.fingerprints(candidate.text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        if candidate.origin.startswith("rule:") and goes_back(candidate.text, node):
            return None
        remembered = node.remembered or candidate.origin.startswith("memory:")
        return Proposal(Trial(candidate, node, rewrite, remembered), file)

    def new_trials(self, answer: Sequence[Proposal]) -> list[Trial]:
        """Return those of an answer that are not known already. They are from now on."""
        return [p.trial for p in answer if self._is_new(p.trial, p.file)]

    def _is_new(self, trial: Trial, file: str) -> bool:
        if trial.fingerprint in self.never_again or self.fails(trial.step, trial.parent):
            return False
        if {(file, False), (file, trial.remembered)} & self._seen:
            return False
        self._seen.add((file, trial.remembered))
        return True

    def add_failed_step(self, step: tuple[str, str], version: Node) -> None:
        """Note that the step failed on ``version``: where that is a remembered one, this says nothing of others."""
        self._failed_steps.add((step, version.remembered))

    def fails(self, step: tuple[str, str], version: Node | None) -> bool:
        """Return whether the step is known to fail on ``version``."""
        remembered = version is not None and version.remembered
        return bool({(step, False), (step, remembered)} & self._failed_steps)
