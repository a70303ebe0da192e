"""Put a search's events into the one line that an editor shows of it, and into its last words."""

from __future__ import annotations

import textwrap

from accelopt_agent.events import (
    CandidateJudged,
    CandidateTried,
    Event,
    Finished,
    ModelSkipped,
    ProgressText,
    SuggestionFound,
)
from accelopt_agent.model.ledger import ledger_line
from accelopt_agent.suggestions.suggestion import Speedup
from accelopt_lsp.features.wording import duration_interval, short_speedup, speedup

#: How many characters of what is being tried an editor's line holds.
WIDTH = 70


class SearchLine:
    """Of one search: ``budget`` is how many candidates it may try."""

    def __init__(self, kernel: str, budget: int) -> None:
        self._kernel, self._budget = kernel, budget
        self._tried = 0
        self._remark = ""
        self._best: Speedup | None = None

    def of(self, event: Event) -> tuple[str, float] | None:
        """Return the line after ``event`` and the share (0..1) of the budget that is spent; None where it stays."""
        if isinstance(event, SuggestionFound):
            if self._best is None or event.suggestion.speedup.value > self._best.value:
                self._best = event.suggestion.speedup
        elif isinstance(event, CandidateTried):
            self._tried = max(self._tried, event.number)
            unchecked = ", unchecked" if event.outcome == "faster" else ""
            return self._line(f"{event.outcome}{unchecked}: {event.candidate.last_step}")
        elif isinstance(event, CandidateJudged):
            verdict = "passed the gate" if event.verdict.accepted else "refused by the gate"
            return self._line(f"{verdict}: {event.candidate.last_step}")
        elif isinstance(event, ModelSkipped):
            self._remark = event.text
        elif isinstance(event, ProgressText):
            return self._line(event.text)
        return None

    def end(self, event: Finished) -> str:
        """Return how the search went."""
        spent = event.usage.candidates >= self._budget  # then the reason says how many
        count = f"; {self._tried} candidate{'' if self._tried == 1 else 's'} tried"
        best = f"; the best is {speedup(self._best)}" if self._best is not None else ""
        ended = "" if spent or not self._tried else count
        sentences = [f"{self._kernel}: {event.reason}{ended}{best}".removesuffix(".") + "."]
        if event.unchecked:
            first, *more = event.unchecked
            others = f" and {len(more)} more" if more else ""
            version = f"{duration_interval(first.latency)} by {first.candidate.last_step.rstrip('.')}"
            sentences.append(f"Faster by their time, not checked yet: {version}{others}.")
        if event.ending != "done" and event.run:
            sentences.append("Resume the search to continue it.")
        sentences += [part for part in (ledger_line(event.calls), self._remark) if part]
        return " ".join(sentences)

    def _line(self, message: str) -> tuple[str, float]:
        """``7 of 40 tried, best 1.80x est.: slower: SUMMARY``: an editor shows no more than the line, or less."""
        best = f", best {short_speedup(self._best)}" if self._best is not None else ""
        short = textwrap.shorten(message.removeprefix(f"{self._kernel}: "), WIDTH, placeholder="...")
        line = f"{self._tried} of {self._budget} tried{best}: {short}"
        return line, min(self._tried / self._budget, 1.0)
