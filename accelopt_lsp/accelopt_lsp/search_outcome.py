"""Gather what a search came to, for the command line and coding agents."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from accelopt_agent import events
from accelopt_agent.search_record import SearchRecord
from accelopt_agent.suggestions.suggestion import Suggestion, best_first
from accelopt_lsp.errors import HostUnavailableError
from accelopt_lsp.features.wording import duration_interval, speedup
from accelopt_lsp.shapes import search_object
from accelopt_profiling.measurement import Latency

if TYPE_CHECKING:
    from accelopt_lsp.service.protocol import FileRequest, SearchRequest, Service

#: So many versions without a verdict are named at the end.
SHOWN = 3


class SearchOutcome:
    """What a search came to, gathered from its events; ``say`` gets a line of each."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.record = SearchRecord()

    @property
    def end(self) -> events.Finished:
        """The last event. Raises HostUnavailableError: there is none."""
        if self.record.end is None:
            raise HostUnavailableError("The search ended without a result.")
        return self.record.end

    @property
    def best_first(self) -> list[Suggestion]:
        return best_first(self.record.suggestions)

    @property
    def baseline(self) -> Latency:
        """The costliest kernel's own latency."""
        return next((m.latency for m in self.record.baselines.values()), Latency())

    async def follow(
        self, service: Service, file: FileRequest, kernel: str | None, request: SearchRequest
    ) -> None:
        """Search, and take note of what happens."""
        async with aclosing(service.optimize(file, kernel, request)) as happening:
            async for event in happening:
                self.record.add(event)
                self._tell(event)

    def as_object(self, file: str, again: str) -> dict[str, Any]:
        """Return what ``optimize --json`` prints; ``again`` is the command that continues the search."""
        return search_object(
            file,
            self.baseline,
            suggestions=self.best_first,
            tried=self.record.tried,
            end=self.end,
            command=again,
        )

    def _tell(self, event: events.Event) -> None:
        if isinstance(event, events.BaselineMeasured):
            if event.kernel not in self.record.skipped:
                self._say(f"{event.kernel}: looking for faster versions")
        elif isinstance(event, events.CandidateTried):
            detail = event.detail if event.outcome == "failed" else duration_interval(event.latency)
            what = f"{event.candidate.origin}: {event.candidate.last_step}"
            outcome = "faster, unchecked" if event.outcome == "faster" else event.outcome
            self._say(f"{event.number:4} {outcome:16} {what}{f' ({detail})' if detail else ''}")
        elif isinstance(event, events.CandidateJudged) and not event.verdict.accepted:
            self._say(
                "     refused by the gate: " + "; ".join(reason.message for reason in event.verdict.reasons)
            )
        elif isinstance(event, events.SuggestionFound):
            self._say(f"     suggestion {event.suggestion.id}: {speedup(event.suggestion.speedup)}")
        elif isinstance(event, events.KernelSkipped):
            self._say(f"{event.kernel} is not searched. {event.text}")
        elif isinstance(event, events.ProgressText):
            self._say(event.text)


def continuing(arguments: Sequence[str]) -> str:
    """Return the command that continues the search that ``arguments`` asked for."""
    words = [a for a in arguments if a != "--resume"]
    at = words.index("--") if "--" in words else len(words)
    return shlex.join(["accelopt", *words[:at], "--resume", *words[at:]])


def not_checked(unchecked: Sequence[events.CandidateTried]) -> list[str]:
    """Return lines about the fastest versions without a verdict of the gate; none without such versions."""
    lines = [
        f"     {duration_interval(t.latency)}  {t.candidate.origin}: {t.candidate.last_step}"
        for t in unchecked
    ]
    return [f"Faster by their time, not checked yet: {len(lines)}", *lines[:SHOWN]] if lines else []
