"""An interrupted run that can be resumed, as the editor shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResumableRun:
    """A run that can be continued without paying for anything twice.

    ``tried`` counts its candidates; ``instructions`` are what the person asked for.
    """

    run: str
    kernel: str
    kernel_hash: str
    tried: int
    instructions: str = ""
