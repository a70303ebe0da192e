"""A search that did not come to its end, as the editor is told of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interrupted:
    """A run that can go on without paying for anything twice. ``tried`` counts the candidates of it and of the runs
    it went on with; ``instructions`` are what the person asked for."""

    run: str
    kernel: str
    kernel_hash: str
    tried: int
    instructions: str = ""
