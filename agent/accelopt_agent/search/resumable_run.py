"""An interrupted run that can be resumed, as the editor shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResumableRun:
    """An interrupted run that can be resumed without paying for anything twice. ``tried`` counts the candidates of it
    and of the runs that it resumed; ``instructions`` are what the person asked for."""

    run: str
    kernel: str
    kernel_hash: str
    tried: int
    instructions: str = ""
