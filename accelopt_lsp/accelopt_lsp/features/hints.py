"""Inlay hints: what single lines cost, where that matters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from accelopt_lsp.features.wording import percent, quantity
from accelopt_lsp.state.state_store import FileState
from accelopt_profiling.measurement import LineCost

#: A line matters when it takes at least this share (0..1) of the kernel's critical resource.
MATTERS = 0.05


@dataclass(frozen=True)
class Hint:
    """A text at the end of a 1-based line, with a longer one for when the pointer rests on it."""

    line: int
    text: str
    tooltip: str


def hints(state: FileState, first: int, last: int) -> Iterator[Hint]:
    """The hints of the lines ``first``..``last`` (1-based, included). Kernels whose text changed have none."""
    for kernel in state.kernels:
        if kernel.shown is None or kernel.old:
            continue
        for cost in kernel.shown.lines:
            if first <= cost.line <= last and (cost.share is None or cost.share >= MATTERS) and cost.text:
                yield Hint(cost.line, cost.text, _tooltip(cost))


def _tooltip(cost: LineCost) -> str:
    rows = [f"{name}: {quantity(q)} ({q.known})" for name, q in cost.quantities.items()]
    if cost.share is not None:
        rows.insert(0, f"{percent(cost.share * 100)} % of what limits this kernel")
    return "\n".join(rows)
