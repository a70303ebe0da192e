"""What a run came to, in one line: how many suggestions, or why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from accelopt_agent.events import BaselineMeasured, CandidateJudged, CandidateTried, Event, SuggestionFound
from accelopt_profiling.kernels import Kernel


class Tally:
    """Counts a run's events. ``kernels`` are those it is about; ``asks_a_model``: rules are not all it has."""

    def __init__(self, kernels: Sequence[Kernel], asks_a_model: bool) -> None:
        self._kernels, self._asks_a_model = {k.name: k for k in kernels}, asks_a_model
        self._searched: list[Kernel] = []
        self._outcomes: Counter[str] = Counter()
        self._refused = 0
        self.found = 0

    def take(self, event: Event) -> None:
        if isinstance(event, BaselineMeasured) and event.kernel in self._kernels:
            self._searched.append(self._kernels[event.kernel])
        elif isinstance(event, CandidateTried):
            self._outcomes[event.outcome] += 1
        elif isinstance(event, CandidateJudged):
            self._refused += not event.verdict.accepted
        elif isinstance(event, SuggestionFound):
            self.found += 1

    def said(self) -> str:
        if self.found:
            return f"{self.found} suggestion{'' if self.found == 1 else 's'}"
        why = self._why()
        return f"nothing faster found ({why})" if why else "nothing faster found"

    def _why(self) -> str:
        tried, unclear = self._outcomes.total(), self._outcomes["unclear"]
        if self._refused:
            return f"{self._refused} refused by the gate"
        if unclear:
            which = (
                "it made"
                if tried == 1
                else f"{unclear} of {tried} made"
                if unclear < tried
                else f"all {tried} made"
            )
            return f"{which} no difference that is larger than the uncertainty of the times"
        if tried or not self._searched:
            return ""
        if all(_written_for_today(k) for k in self._searched) and not self._asks_a_model:
            return "the rules rewrite neuronxcc.nki; kernels of today's nki need a model, see docs/how-to/models.md"
        return "no rewrite was proposed" if self._asks_a_model else "no rule applies"


def _written_for_today(kernel: Kernel) -> bool:
    """Whether an NKI kernel is in the current dialect, which has no rules."""
    return kernel.dialect == "nki" and not any(d.startswith("neuronxcc.") for d in kernel.decorators)
