"""Writes a timeline as two SVG pictures, how busy each engine is over the whole run and its middle enlarged, and as a
trace that Perfetto and chrome://tracing open.

A picture loads and runs nothing: shapes with tooltips (``<title>``), readable in light and dark. A trace is in
Google's "Trace Event Format" (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), with complete
events ("X") and times in microseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from accelopt_profiling import __version__
from accelopt_profiling.duration import duration_text
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.source_text import source_lines
from accelopt_profiling.timeline import Timeline

STYLE = """
svg text { font: 12px system-ui, sans-serif; fill: currentColor; } svg.timeline { width: 100%; height: auto; }
svg .lane { fill: currentColor; fill-opacity: .06; } svg .axis { stroke: currentColor; stroke-opacity: .4; }
"""
_COLOURS = {
    "TensorE": "#3b6fb6", "VectorE": "#d1791f", "ScalarE": "#3f9a57", "GpSimdE": "#8a5fb0", "DMA": "#7d7d7d",
}  # fmt: skip
_WIDTH, _LEFT, _ROW, _BAR = 960, 76, 24, 18
_CLOSER = 160  # spans in the closer look


def pictures(timeline: Timeline, lines: Sequence[str]) -> str:
    """Return the run and its middle as HTML; ``lines`` are the kernel file's, for the tooltips. Empty if
    nothing ran."""
    if not timeline.lanes or timeline.us <= 0:
        return ""
    first, last = _middle(timeline)
    whole = _svg(
        timeline,
        0.0,
        last=timeline.us,
        shapes=_shares(timeline),
        title="How busy each engine is during the run",
    )
    closer = _svg(
        timeline,
        first,
        last=last,
        shapes=_work(timeline, first, last, lines),
        title="What each engine does in the middle",
    )
    return (
        f"<h3>Engine timeline, estimated</h3>{whole}"
        f'<p class="known">The darker, the busier. The middle of the run, {duration_text(first)} to '
        f"{duration_text(last)}:</p>{closer}"
    )


def _svg(timeline: Timeline, first: float, last: float, shapes: Iterator[str], title: str) -> str:
    height = _ROW * len(timeline.lanes) + 20
    parts = [
        f'<svg class="timeline" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>"
    ]
    for n, engine in enumerate(timeline.lanes):
        y = n * _ROW
        parts.append(
            f'<text x="0" y="{y + 14}">{escape(engine)}</text>'
            f'<rect class="lane" x="{_LEFT}" y="{y}" width="{_WIDTH - _LEFT}" height="{_BAR}"></rect>'
        )
    parts.extend(shapes)
    base = _ROW * len(timeline.lanes)
    parts.append(f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH}" y1="{base}" y2="{base}"></line>')
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        x = _LEFT + share * (_WIDTH - _LEFT)
        label = duration_text(first + share * (last - first))
        parts.append(f'<text x="{x:.0f}" y="{base + 15}" text-anchor="{anchor}">{label}</text>')
    parts.append("</svg>")
    return "".join(parts)


def _shares(timeline: Timeline) -> Iterator[str]:
    for n, (engine, shares) in enumerate(zip(timeline.lanes, timeline.busy, strict=True)):
        width = (_WIDTH - _LEFT) / max(1, len(shares))
        for at, share in enumerate(shares):
            if share > 0:
                yield _bar(
                    engine,
                    n,
                    x=_LEFT + at * width,
                    width=width,
                    title=f"{engine} {share:.0%} busy",
                    opacity=share,
                )


def _work(timeline: Timeline, first: float, last: float, lines: Sequence[str]) -> Iterator[str]:
    spans = timeline.spans
    scale = (_WIDTH - _LEFT) / max(last - first, 1e-9)
    for n, lane in enumerate(spans.lane):
        start, end = max(spans.start_us[n], first), min(spans.start_us[n] + spans.us[n], last)
        if end <= start:
            continue
        line = spans.line[n]
        source = f": {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""
        text = f"{timeline.names[spans.name[n]]}, {duration_text(spans.us[n])}, line {line}{source}"
        yield _bar(
            timeline.lanes[lane],
            lane,
            x=_LEFT + (start - first) * scale,
            width=(end - start) * scale,
            title=text,
        )


def _bar(engine: str, lane: int, x: float, width: float, title: str, opacity: float = 1.0) -> str:
    colour = _COLOURS.get(engine.split()[0], "#7d7d7d")
    return (
        f'<rect x="{x:.1f}" y="{lane * _ROW}" width="{max(width - 0.3, 0.4):.1f}" height="{_BAR}" fill="{colour}" '
        f'fill-opacity="{opacity:.2f}"><title>{escape(title)}</title></rect>'
    )


def _middle(timeline: Timeline) -> tuple[float, float]:
    """From when to when the closer look reaches: some spans around the middle of what there is."""
    starts = timeline.spans.start_us
    at = bisect_left(starts, timeline.shown_us / 2)
    low, high = max(0, at - _CLOSER // 2), min(len(starts) - 1, at + _CLOSER // 2)
    last = max(
        n_start + n_us for n_start, n_us in zip(starts[low : high + 1], timeline.spans.us[low:], strict=False)
    )
    return starts[low], min(last, timeline.us)


def trace_object(file: str, text: str, kernels: Sequence[KernelMeasurement]) -> dict[str, Any]:
    """Return the trace of the kernels of one file, one process each; kernels without a timeline are left
    out."""
    lines = source_lines(text)
    events = [
        event
        for pid, kernel in enumerate(kernels, start=1)
        if kernel.timeline is not None
        for event in _events(pid, kernel, kernel.timeline, lines)
    ]
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"file": file, "version": f"accelopt {__version__}", "known": "estimated by a model"},
    }


def _events(
    pid: int, kernel: KernelMeasurement, timeline: Timeline, lines: Sequence[str]
) -> Iterator[dict[str, Any]]:
    yield _name("process_name", pid, 0, f"{kernel.name} on {kernel.target}, estimated")
    for lane, engine in enumerate(timeline.lanes):
        yield _name("thread_name", pid, lane, "DMA (all queues)" if engine == "DMA" else engine)
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": lane, "args": {"sort_index": lane}}
    spans = timeline.spans
    for n, lane in enumerate(spans.lane):
        line = spans.line[n]
        args: dict[str, Any] = {"line": line}
        if 0 < line <= len(lines):
            args["source"] = lines[line - 1].strip()
        cause = spans.cause[n]
        if cause >= 0 and spans.why[n] in ("operand", "room"):
            waited = f"{timeline.names[spans.name[cause]]} on line {spans.line[cause]}"
            args["waited for"] = f"{waited} ({timeline.lanes[spans.lane[cause]]})"
            args["because"] = "it writes an operand" if spans.why[n] == "operand" else "it uses the room"
        yield {
            "ph": "X", "name": timeline.names[spans.name[n]], "cat": timeline.lanes[lane], "pid": pid, "tid": lane,
            "ts": spans.start_us[n], "dur": spans.us[n], "args": args,
        }  # fmt: skip


def _name(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}
