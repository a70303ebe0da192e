"""Inlay hints: what single lines cost, where that matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accelopt_lsp.features.statements import statement_ends
from accelopt_lsp.features.wording import duration, percent, quantity
from accelopt_lsp.state.state_store import Document
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import KernelMeasurement, Latency, LineCost

#: A line matters when it takes at least this share (0..1) of the kernel's critical resource.
MATTERS = 0.05

#: Characters of a hint; VS Code cuts at 43, and a hint shares the line with the code.
WIDTH = 30


@dataclass(frozen=True)
class Hint:
    """A text at the end of a 1-based line, with a longer one for when the pointer rests on it."""

    line: int
    text: str
    tooltip: str


def hints(state: Document, lines: Sequence[str], first: int, last: int) -> Iterator[Hint]:
    """Yield the hints of the lines ``first``..``last`` (1-based, included) of a text.

    One stands behind the last line of the statement that it is about, the costliest first. Kernels whose text changed
    have none.
    """
    ends: dict[str, list[int]] = {}
    for kernel in state.kernels:
        if kernel.shown is None or kernel.old:
            continue
        busiest = busiest_engine(kernel.shown)
        by_end: dict[int, list[LineCost]] = {}
        for cost in kernel.shown.lines:
            if cost.line <= last and cost.text and (cost.share is None or cost.share >= MATTERS):
                around = state.kernel_at(cost.line)
                if (cost.line if around is None else around.kernel.end_line) < first:
                    continue
                end = cost.line if around is None else _end(ends, lines, cost.line, around.kernel)
                if first <= end <= last:
                    by_end.setdefault(end, []).append(cost)
        for end, costs in by_end.items():
            costliest = max(costs, key=lambda cost: cost.share or 0.0)
            about = "\n".join(_tooltip(kernel.shown, cost, busiest, len(costs) > 1) for cost in costs)
            yield Hint(end, _text(costliest, busiest), about)


def busiest_engine(result: KernelMeasurement) -> str:
    """Return the engine that is busy longest; empty where nothing overlaps, or nobody says."""
    busy = {
        name.removesuffix(" busy"): q.value or 0.0
        for name, q in result.quantities.items()
        if name.endswith(" busy")
    }
    return max(busy, key=lambda engine: busy[engine], default="")


def _end(ends: dict[str, list[int]], lines: Sequence[str], line: int, around: Kernel) -> int:
    """Return the last line of the statement at ``line`` of a kernel; ``ends`` has those of kernels looked at before."""
    if around.name not in ends:
        ends[around.name] = statement_ends(lines, around.first_line, around.end_line)
    index = line - around.first_line
    return ends[around.name][index] if index < len(ends[around.name]) else line


def _text(cost: LineCost, busiest: str) -> str:
    """Return ``strided, 33 %``, ``VectorE 56 %, waits on DMA`` or, for an engine that works beside the busiest,
    ``DMA, overlaps``: shares that are shown come to 100 % at most."""
    share = "" if cost.share is None else f"{percent(cost.share * 100)} %"
    if not cost.engine:
        parts = [cost.cause, share] if cost.cause else [cost.text]
    elif cost.engine == busiest:
        parts = [f"{cost.engine} {share}", cost.cause]
    else:
        parts = [cost.engine, cost.cause or "overlaps"]
    return _shortened(", ".join(part for part in parts if part))


def _tooltip(result: KernelMeasurement, cost: LineCost, busiest: str, with_line: bool) -> str:
    rows = [f"line {cost.line}: {cost.text}" if with_line else cost.text]
    if share := share_text(result, cost, busiest):
        rows.append(share)
    rows += [f"{name.replace('_', ' ')}: {quantity(q)} ({q.known})" for name, q in cost.quantities.items()]
    return "\n".join(rows)


def share_text(result: KernelMeasurement, cost: LineCost, busiest: str) -> str:
    """Return what a line's share is a share of; empty where it has none."""
    if cost.share is None:
        return ""
    if not cost.engine:
        part = duration(_part(result.latency, cost.share))
        return f"{percent(cost.share * 100)} % of what limits {result.name}, {part}"
    beside = "" if cost.engine == busiest or not busiest else f", beside {busiest}, which is busiest"
    return f"keeps {cost.engine} busy for {percent(cost.share * 100)} % of the time{beside}"


def _part(whole: Latency, share: float) -> Latency:
    if whole.us is None:
        return whole
    low, high = (end and end * share for end in (whole.low_us, whole.high_us))
    return Latency(whole.us * share, low, high, whole.known)


def _shortened(text: str) -> str:
    """Return the first parts of a text that an editor has room for."""
    if len(text) <= WIDTH:
        return text
    whole = [text[:at] for at, character in enumerate(text) if character in ",;" and at <= WIDTH]
    return whole[-1] if whole else f"{text[: WIDTH - 3].rstrip()}..."
