"""Gather what a search came to from its events."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelopt_agent.events import (
    BaselineMeasured,
    CandidateJudged,
    CandidateTried,
    Event,
    Finished,
    KernelSkipped,
    SuggestionFound,
)
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_profiling.measurement import KernelMeasurement


@dataclass
class SearchRecord:
    """What a search came to so far.

    ``baselines`` are the originals' measurements by kernel, the costliest first; ``skipped`` says why a kernel is not
    searched. ``end`` is the last event, None before it.
    """

    baselines: dict[str, KernelMeasurement] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    suggestions: list[Suggestion] = field(default_factory=list)
    tried: int = 0
    judged: int = 0
    end: Finished | None = None

    def add(self, event: Event) -> None:
        match event:
            case BaselineMeasured():
                self.baselines[event.kernel] = event.measurement
            case KernelSkipped():
                self.skipped[event.kernel] = event.text
            case CandidateTried():
                self.tried = max(self.tried, event.number)
            case CandidateJudged():
                self.judged += 1
            case SuggestionFound():
                self.suggestions.append(event.suggestion)
            case Finished():
                self.end = event
