"""Inlay hints: what single lines cost, where that matters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from accelopt_lsp.features.wording import percent, quantity
from accelopt_lsp.state.state_store import Document
from accelopt_profiling.duration import WIDTH
from accelopt_profiling.measurement import LineCost

#: A line matters when it takes at least this share (0..1) of the kernel's critical resource.
MATTERS = 0.05


@dataclass(frozen=True)
class Hint:
    """A text at the end of a 1-based line, with a longer one for when the pointer rests on it."""

    line: int
    text: str
    tooltip: str


def hints(state: Document, first: int, last: int) -> Iterator[Hint]:
    """Yield the hints of the lines ``first``..``last`` (1-based, included). Kernels whose text changed have
    none."""
    for kernel in state.kernels:
        if kernel.shown is None or kernel.old:
            continue
        for cost in kernel.shown.lines:
            if first <= cost.line <= last and (cost.share is None or cost.share >= MATTERS) and cost.text:
                yield Hint(cost.line, cost.hint or _shortened(cost.text), _tooltip(cost))


def _tooltip(cost: LineCost) -> str:
    rows = [cost.text]
    if cost.share is not None:
        rows.append(f"{percent(cost.share * 100)} % of what limits this kernel")
    rows += [f"{name.replace('_', ' ')}: {quantity(q)} ({q.known})" for name, q in cost.quantities.items()]
    return "\n".join(rows)


def _shortened(text: str) -> str:
    """Return the first parts of a text that an editor has room for."""
    if len(text) <= WIDTH:
        return text
    whole = [text[:at] for at, character in enumerate(text) if character in ",;" and at <= WIDTH]
    return whole[-1] if whole else f"{text[: WIDTH - 3].rstrip()}..."
