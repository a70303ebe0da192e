"""The interface between the search loop and a strategy: steps, their results, and ``Strategy``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from accelopt_agent.search.node import Node
from accelopt_agent.search.trial import Trial


@dataclass(frozen=True, eq=False)
class AskProposer:
    """Ask ``proposer`` for rewrites of ``node``, or for the repair of a node that failed."""

    node: Node
    proposer: str


@dataclass(frozen=True, eq=False)
class TryCandidate:
    """Find out what a rewrite costs. Only this step counts against the budget of candidates."""

    trial: Trial


@dataclass(frozen=True, eq=False)
class ValidateNode:
    """Send ``node`` through the gate."""

    node: Node


SearchStep = AskProposer | TryCandidate | ValidateNode


@dataclass(frozen=True)
class Capacity:
    """The kinds of steps that can be started now.

    ``candidates`` is how many more the budget lets the run try.
    """

    proposals: bool = True
    measurements: bool = True
    validations: bool = True
    candidates: float = math.inf


@dataclass(frozen=True, eq=False)
class ProposalsReceived:
    """The result of ``ask``: rewrites that were not known before, most promising first. ``silent`` says that the
    proposer will answer no more in this run, ``answered`` that what it answered could be read."""

    ask: AskProposer
    trials: Sequence[Trial]
    silent: bool = False
    answered: bool = True


@dataclass(frozen=True, eq=False)
class CandidateMeasured:
    """``trial`` became ``node``, which may have failed."""

    trial: Trial
    node: Node


@dataclass(frozen=True, eq=False)
class NodeValidated:
    """The gate's verdict on ``node`` is in its ``verdict``."""

    node: Node


StepResult = ProposalsReceived | CandidateMeasured | NodeValidated


#: Proposers that are asked about the original only.
ONCE_PER_SEARCH = frozenset({"memory"})

#: Proposers whose every call costs something and may answer differently.
PAID = frozenset({"model"})


class Strategy(Protocol):
    """Chooses the steps of a search from its nodes alone. Runs nothing and waits for nothing."""

    def choose(self, free: Capacity) -> SearchStep | None:
        """Return a step of a kind that is ``free``, to be started now. None means: wait for the result of a running
        step, or, when none is running, end the search."""

    def observe(self, result: StepResult) -> None:
        """Take in the result of a step."""

    def usable(self, name: str) -> bool:
        """Return whether the proposer may still be asked."""

    def best(self) -> Node:
        """Return the fastest node that may be offered: a checked one, or the original."""

    def unchecked(self) -> Node | None:
        """Return the fastest node that lacks only the gate's verdict to be offered and beats ``best``, if
        any."""
