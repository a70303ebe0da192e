"""The timeline of an NKI kernel: the trace file of ``profile --trace`` and the picture of ``report``."""

from __future__ import annotations

import json
import re
from pathlib import Path

from support.command import Command
from support.nki_kernels import SILU

from accelopt_lsp.cli.timeline import trace_object
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.timeline import Spans, Timeline

SMALL = Timeline(
    10.0, ["VectorE", "DMA"], ["tensor_tensor", "load"], [[0.0, 1.0], [0.5, 0.0]],
    Spans([1, 0], [1, 0], [1, 2], [0.0, 5.0], [2.5, 5.0], [-1, 0], ["", "operand"]), 10.0,
)  # fmt: skip


def test_profile_writes_a_trace_that_perfetto_reads(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    ended = accelopt("profile", "silu.py", "--trace", "out.json", "--json")
    assert ended.code == 0
    assert "ui.perfetto.dev" in ended.err
    events = json.loads((home / "out.json").read_text())["traceEvents"]
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    work = [e for e in events if e["ph"] == "X"]
    assert set(threads.values()) == {"VectorE", "ScalarE", "DMA (all queues)"}
    assert {e["tid"] for e in work} == set(threads)
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in work)
    load = next(e for e in work if e["name"] == "load")
    assert load["args"] == {"line": 17, "source": "tile = nl.load(x[i * 128 + rows, j * COLUMNS + columns])"}
    waiting = next(e for e in work if e["name"] == "activation")
    assert waiting["args"]["waited for"] == "load on line 17 (DMA)"
    us = ended.object["kernels"][0]["latency"]["us"]
    assert max(e["ts"] + e["dur"] for e in work) <= us


def test_a_trace_that_cannot_be_written_is_a_wrong_input(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    assert accelopt("profile", "silu.py", "--trace", "absent/out.json").code == 2


def test_the_report_shows_the_engines(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text(SILU)
    assert accelopt("report", "silu.py", "-o", "out.html").code == 0
    text = (home / "out.html").read_text()
    assert text.count('<svg class="chart"') == 4
    assert "activation, " in text
    assert "line 17: tile = nl.load(" in text


def test_kernels_without_a_timeline_are_left_out_of_a_trace() -> None:
    kernels = [
        KernelMeasurement("a", 1, "triton", "h100"),
        KernelMeasurement("b", 1, "nki", "trn1", timeline=SMALL),
    ]
    trace = trace_object("k.py", "a\nb\n", kernels)
    assert {event["pid"] for event in trace["traceEvents"]} == {2}


def test_lines_after_a_form_feed_are_those_of_the_editor(accelopt: Command, home: Path) -> None:
    (home / "silu.py").write_text("\x0c\n" + SILU)
    assert accelopt("profile", "silu.py", "--trace", "out.json", "--json").code == 0
    events = json.loads((home / "out.json").read_text())["traceEvents"]
    load = next(e for e in events if e["name"] == "load" and e["ph"] == "X")
    assert load["args"] == {"line": 18, "source": "tile = nl.load(x[i * 128 + rows, j * COLUMNS + columns])"}
    assert accelopt("report", "silu.py", "-o", "out.html").code == 0
    assert re.search(r"</b> *18 +tile = nl\.load", (home / "out.html").read_text())
