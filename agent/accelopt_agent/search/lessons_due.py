"""Choose the versions of a search that a lesson is written about: checked gains first, then clear losses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from accelopt_agent.request import LessonLimits
from accelopt_agent.search.node import Node


@runtime_checkable
class LessonWriter(Protocol):
    """A proposer that can say in a few sentences why one version is faster than another."""

    async def lesson(self, slow: Node, fast: Node) -> str:
        """Return the lesson. Raises ProposerError."""


def lessons_due(root: Node, limits: LessonLimits) -> Iterator[tuple[Node, Node, Node]]:
    """Yield (slow, fast, version) for each version that teaches something, at most ``limits.most``: the largest gains
    first, then the largest losses. Every pair reads from slow to fast, so a loss is turned about."""
    versions = [
        n for n in root.walk() if n.parent is not None and n.failure is None and 0 < n.us < float("inf")
    ]
    gains = [n for n in versions if n.verdict == "accepted" and root.us >= limits.gain * n.us]
    losses = [n for n in versions if n.parent is not None and n.us >= limits.loss * n.parent.us > 0]
    due = [(root, n, n) for n in sorted(gains, key=lambda n: n.us)]
    due += [(n, n.parent, n) for n in sorted(losses, key=_loss, reverse=True) if n.parent is not None]
    yield from due[: limits.most]


def _loss(node: Node) -> float:
    return node.us / node.parent.us if node.parent is not None else 0.0
