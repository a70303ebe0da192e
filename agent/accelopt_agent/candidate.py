"""A rewritten kernel that is not checked yet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

#: Stands between the steps of a summary.
THEN = "; then: "


@dataclass(frozen=True)
class Candidate:
    """A rewrite of one kernel, as the whole file after rewriting.

    ``origin`` is "rule:NAME", "memory:ID" or "model:NAME"; ``steps`` are the origins of all rewrites that led
    here, oldest first. ``item`` is what it is an instance of, by which outcomes are added up ("edit:ID" for any pair
    that teaches the same, "sequence:..." for rules applied one after the other; "": its origin). ``expects``
    names counters and how they should move ("down", "up"), e.g. {"dma_bytes": "down"}. ``variant`` tells that only a
    number is another one than in a candidate of the same rule.
    """

    kernel: str
    text: str
    origin: str
    summary: str
    expects: dict[str, str] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    item: str = ""
    variant: bool = False

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.kernel}\0{self.text}".encode()).hexdigest()[:12]

    @property
    def last_step(self) -> str:
        """What the last of its steps does, and how many came before, in one line."""
        *before, last = self.summary.split(THEN)
        after = f" (after {len(before)} other step{'' if len(before) == 1 else 's'})" if before else ""
        return f"{last.rstrip('.')}{after}" if before else last
