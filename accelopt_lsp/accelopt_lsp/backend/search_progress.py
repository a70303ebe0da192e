"""Turn the events of a search into the progress, suggestions and end that the server shows."""

from __future__ import annotations

import textwrap

from accelopt_agent.events import (
    CandidateJudged,
    CandidateTried,
    Event,
    Finished,
    ProgressText,
    SuggestionFound,
)
from accelopt_agent.suggestions.suggestion import Speedup
from accelopt_lsp.backend.protocol import SearchEnd, SearchEvent, SearchProgress
from accelopt_lsp.features.wording import speedup

#: How many characters of what is being tried an editor's line holds.
WIDTH = 70


class SearchProgressFormatter:
    """Of one search: ``budget`` is how many candidates it may try, ``remark`` what its last words end with."""

    def __init__(self, kernel: str, budget: int, remark: str = "") -> None:
        self._kernel, self._budget, self._remark = kernel, budget, remark
        self._tried = 0
        self._best: Speedup | None = None

    def of(self, event: Event) -> list[SearchEvent]:
        if isinstance(event, SuggestionFound):
            if self._best is None or event.suggestion.speedup.value > self._best.value:
                self._best = event.suggestion.speedup
            return [event.suggestion]
        if isinstance(event, CandidateTried):
            self._tried = max(self._tried, event.number)
            return [self._going_on(f"{event.candidate.summary} ({event.outcome})")]
        if isinstance(event, CandidateJudged):
            verdict = "passed the gate" if event.verdict.accepted else "refused by the gate"
            return [self._going_on(f"{event.candidate.summary} ({verdict})")]
        if isinstance(event, ProgressText):
            return [self._going_on(event.text)]
        if isinstance(event, Finished):
            from accelopt_agent.model.ledger import ledger_line

            spent = event.usage.candidates >= self._budget  # then the reason says how many
            ended = "" if spent or not self._tried else f"; {self._tried} candidates tried"
            best = f"; the best is {speedup(self._best)}" if self._best is not None else ""
            said = [f"{self._kernel}: {event.reason}{ended}{best}."]
            said += [part for part in (ledger_line(event.calls), self._remark) if part]
            return [SearchEnd(self._tried, " ".join(said))]
        return []

    def _going_on(self, message: str) -> SearchProgress:
        """``7 of 40 tried, best 1.80x est.: SUMMARY (slower)``: an editor shows no more than the line, or less."""
        best = f", best {speedup(self._best).partition(' (')[0]}" if self._best is not None else ""
        going_on = textwrap.shorten(message.removeprefix(f"{self._kernel}: "), WIDTH, placeholder="...")
        told = f"{self._tried} of {self._budget} tried{best}: {going_on}"
        return SearchProgress(told, self._tried, min(self._tried / self._budget, 1.0))
