"""What a search strategy decides: what to do next, from what is known so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from accelopt_agent.search.node import Node
from accelopt_agent.search.trial import Trial


@dataclass(frozen=True, eq=False)
class Ask:
    """Ask ``proposer`` for rewrites of ``node``; of a version that failed, for its repair."""

    node: Node
    proposer: str


@dataclass(frozen=True, eq=False)
class Try:
    """Find out what a rewrite costs. Only this counts as a candidate."""

    trial: Trial


@dataclass(frozen=True, eq=False)
class Judge:
    """Send ``node`` through the gate."""

    node: Node


Step = Ask | Try | Judge


@dataclass(frozen=True)
class Room:
    """Which kinds of steps can begin now: a call, a cost, a proof."""

    asks: bool = True
    tries: bool = True
    judges: bool = True


@dataclass(frozen=True, eq=False)
class Answered:
    """``ask`` came to these rewrites, none of them known before, most promising first. ``silent``: the proposer
    has nothing more to say in this run."""

    ask: Ask
    trials: Sequence[Trial]
    silent: bool = False


@dataclass(frozen=True, eq=False)
class Tried:
    """``trial`` became ``node``, which may have failed."""

    trial: Trial
    node: Node


@dataclass(frozen=True, eq=False)
class Judged:
    """The gate has spoken about ``node``: see its ``proof``."""

    node: Node


Seen = Answered | Tried | Judged


#: The proposers that are asked about the original only, and those whose every call costs something and may answer
#: differently.
ONCE = frozenset({"memory"})
PAID = frozenset({"model"})


class Strategy(Protocol):
    """Decides from nodes alone; runs nothing and waits for nothing."""

    def choose(self, room: Room) -> Step | None:
        """A step that has room, to be begun now. None: nothing before something begun is observed; with nothing
        begun, the end."""

    def observe(self, seen: Seen) -> None:
        """What came of a step."""

    def best(self) -> Node:
        """The fastest node that may be offered: proved, or the original. The incumbent always competes."""
