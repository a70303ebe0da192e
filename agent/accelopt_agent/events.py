"""The events that a search yields while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from accelopt_agent.candidate import Candidate
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import KernelMeasurement, Latency

#: What the cost of a candidate says: it could not be run; it is slower than the baseline; it is not clearly
#: faster, which may be noise; it is clearly faster and may go through the gate.
CandidateOutcome = Literal["failed", "slower", "unclear", "faster"]

#: How a run ended: with its last candidate, early by the time of its budget, by a person or a signal, or by a host that
#: was lost.
Ending = Literal["done", "early", "stopped", "failed"]


@dataclass(frozen=True)
class Usage:
    """The use of a run so far.

    ``judged`` counts the candidates that went through the gate, ``skipped`` those known to be duplicates, traps or
    rejected, which cost nothing, ``remembered`` those measured by the interrupted run that was resumed. ``money`` is
    None without a configured price.
    """

    candidates: int = 0
    judged: int = 0
    skipped: int = 0
    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    money: float | None = None
    remembered: int = 0


@dataclass(frozen=True)
class ModelCall:
    """One call of a model: tokens as the server counted them (``estimated`` where it did not), ``tokens_cached`` of
    those read from its cache; seconds with all retries, money at the configured price (None without one), and the fault
    that ended it, if any."""

    role: str
    model: str
    tokens_in: int
    tokens_out: int
    seconds: float
    money: float | None
    fault: str = ""
    tokens_cached: int = 0
    estimated: bool = False


@dataclass(frozen=True)
class BaselineMeasured:
    """The original's measurement, before the search of ``kernel`` begins."""

    kernel: str
    measurement: KernelMeasurement


@dataclass(frozen=True)
class CandidateTried:
    """The ``number``-th candidate of the run (from 1) and how its cost compares. ``detail`` is one line."""

    number: int
    candidate: Candidate
    outcome: CandidateOutcome
    latency: Latency
    detail: str = ""


@dataclass(frozen=True)
class CandidateJudged:
    """The gate's verdict on a candidate that is clearly faster."""

    candidate: Candidate
    verdict: Verdict


@dataclass(frozen=True)
class SuggestionFound:
    """A checked version that is offered."""

    suggestion: Suggestion


@dataclass(frozen=True)
class ProgressText:
    """One line for a person: the current activity, or a fault and its consequence. ``tokens`` are those of all calls
    of a model so far."""

    text: str
    tokens: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class KernelSkipped(ProgressText):
    """A kernel that is not searched, and why, as one line without its name."""

    kernel: str


@dataclass(frozen=True)
class ModelSkipped(ProgressText):
    """A model is configured and not asked; the text says why."""


@dataclass(frozen=True)
class LayoutSkipped(ProgressText):
    """The project configures a formatter and versions stay as they were written; the text says why."""


@dataclass(frozen=True)
class Finished:
    """The end of the run: its reason (one line), its use and the ledger of its model calls.

    One that was not done can be continued. ``unchecked`` are the versions that are faster by their cost
    and have no verdict, the fastest first.
    """

    run: str
    reason: str
    usage: Usage
    calls: tuple[ModelCall, ...] = ()
    ending: Ending = "done"
    unchecked: tuple[CandidateTried, ...] = ()


Event = BaselineMeasured | CandidateTried | CandidateJudged | SuggestionFound | ProgressText | Finished
