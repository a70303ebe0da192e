"""Writes a timeline as a trace that Perfetto and chrome://tracing open.

A trace is in Google's "Trace Event Format" (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU),
with complete events ("X") and times in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accelopt_profiling import __version__
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.source_text import source_lines
from accelopt_profiling.timeline import Timeline


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
