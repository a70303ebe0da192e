"""The events of a search in the server's words."""

from __future__ import annotations

from accelopt_agent.events import (
    CandidateJudged,
    CandidateTried,
    Event,
    Finished,
    ProgressText,
    SuggestionFound,
)
from accelopt_lsp.server.backend import Ended, SearchEvent, Tried


class Told:
    """Of one search: ``budget`` is how many candidates it may try, ``remark`` what its last words end with."""

    def __init__(self, kernel: str, budget: int, remark: str = "") -> None:
        self._kernel, self._budget, self._remark = kernel, budget, remark
        self._tried = self._found = 0

    def of(self, event: Event) -> list[SearchEvent]:
        if isinstance(event, SuggestionFound):
            self._found += 1
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

            said = [f"{self._kernel}: {event.reason}; {self._tried} candidates tried."]
            said += [part for part in (ledger_line(event.calls), self._remark) if part]
            return [Ended(self._tried, " ".join(said))]
        return []

    def _going_on(self, message: str) -> Tried:
        return Tried(message, self._tried, min(self._tried / self._budget, 1.0))
