"""Put a search's events into what an editor shows of it while it runs, and into its last words."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from accelopt_agent.events import (
    BaselineMeasured,
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
from accelopt_profiling.measurement import Latency

#: How many characters of what is being tried an editor's line holds.
WIDTH = 70


@dataclass(frozen=True)
class SearchProgress:
    """How far a search is: ``tried`` of ``budget`` candidates after ``seconds``, and what it is ``doing``.

    ``best`` is the speedup of the best checked version, ``unproved`` that of a better one without a verdict.
    ``tokens`` are those of the calls of a model.
    """

    budget: int
    tried: int = 0
    seconds: int = 0
    best: str = ""
    unproved: str = ""
    tokens: int = 0
    doing: str = ""

    @property
    def share(self) -> float:
        """The part of the budget that is spent, 0..1."""
        return min(self.tried / self.budget, 1.0)

    def __str__(self) -> str:
        """``7 of 40 tried in 34 s, best 1.80x est.: slower: SUMMARY``: an editor shows no more than the line."""
        parts = [
            f"{self.tried} of {self.budget} tried in {clock_text(self.seconds)}",
            f"best {self.best}" if self.best else "",
            f"{self.unproved} not proved" if self.unproved else "",
            f"{self.tokens:,} tokens" if self.tokens else "",
        ]
        return f"{', '.join(part for part in parts if part)}: {self.doing}"


def clock_text(seconds: int) -> str:
    """Return ``34 s``, ``2 min 5 s``."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class SearchLine:
    """Of one search: ``budget`` is how many candidates it may try, ``clock`` gives seconds."""

    def __init__(self, kernel: str, budget: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._kernel, self._clock, self._began = kernel, clock, clock()
        self._budget, self._tried = budget, 0
        self._progress = SearchProgress(budget)
        self._remark = ""
        self._best: Speedup | None = None
        self._baseline = Latency()
        self._unproved: dict[str, Speedup] = {}

    def of(self, event: Event) -> SearchProgress | None:
        """Return how far the search is after ``event``; None where there is nothing to say."""
        if isinstance(event, BaselineMeasured):
            self._baseline = event.measurement.latency
        elif isinstance(event, SuggestionFound):
            if self._best is None or event.suggestion.speedup.value > self._best.value:
                self._best = event.suggestion.speedup
        elif isinstance(event, CandidateTried):
            self._tried = max(self._tried, event.number)
            unchecked = ", unchecked" if event.outcome == "faster" else ""
            if unchecked and event.latency.us and self._baseline.us:
                ratio = self._baseline.us / event.latency.us
                self._unproved[event.candidate.id] = Speedup(ratio, ratio, ratio, event.latency.known)
            return self._now(f"{event.outcome}{unchecked}: {event.candidate.last_step}")
        elif isinstance(event, CandidateJudged):
            self._unproved.pop(event.candidate.id, None)
            verdict = "passed the gate" if event.verdict.accepted else "refused by the gate"
            return self._now(f"{verdict}: {event.candidate.last_step}")
        elif isinstance(event, ModelSkipped):
            self._remark = event.text
        elif isinstance(event, ProgressText):
            self._progress = replace(self._progress, tokens=max(self._progress.tokens, event.tokens))
            return self._now(event.text)
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

    def _now(self, message: str) -> SearchProgress:
        best = self._best.value if self._best is not None else 0.0
        unproved = max(self._unproved.values(), key=lambda speedup: speedup.value, default=None)
        return replace(
            self._progress,
            tried=self._tried,
            seconds=round(self._clock() - self._began),
            best=short_speedup(self._best) if self._best is not None else "",
            unproved=short_speedup(unproved) if unproved is not None and unproved.value > best else "",
            doing=textwrap.shorten(message.removeprefix(f"{self._kernel}: "), WIDTH, placeholder="..."),
        )
