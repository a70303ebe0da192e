"""What a search strategy decides: which node to work on next, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Union

from accelopt_agent.node import Node


@dataclass(frozen=True)
class Expand:
    """Ask ``proposer`` for rewrites of ``node`` and find out their costs."""

    node: Node
    proposer: str


@dataclass(frozen=True)
class Judge:
    """Send ``node`` through the gate."""

    node: Node


Step = Union[Expand, Judge]  # noqa: UP007


class Strategy(Protocol):
    """Decides from nodes alone; runs nothing and waits for nothing."""

    def choose(self) -> Step | None:
        """The next step; None when nothing is worth doing any more."""

    def observe(self, node: Node) -> None:
        """A node is new, or the gate has spoken about it."""

    def give_up(self, proposer: str) -> None:
        """``proposer`` has nothing more to say in this run."""

    def best(self) -> Node:
        """The fastest node that may be offered: proved, or the original. The incumbent always competes."""
