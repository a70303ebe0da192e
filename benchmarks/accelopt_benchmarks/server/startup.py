"""Measure the start of the server: to the answer of ``initialize``, and to the first lens of a profiled file.

Beside it, in turns, another language server (pyright's, where it is on the path): on a busy machine only the ratio of
the two says something.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_benchmarks.server.stdio_editor import SERVER, StdioEditor
from accelopt_lsp.demo.editor import timed_title

ROUNDS = 7
FILE = "nki_silu.py"
#: The server to compare with: pyright's, from the npm package of that name.
PEER = ("pyright-langserver", "--stdio")
INITIALIZE, LENS = (
    "process start to initialize answered",
    "process start to the first lens of a profiled file",
)

_CAPABILITIES = {"workspace": {"codeLens": {"refreshSupport": True}}, "textDocument": {"codeLens": {}}}


async def startup(examples: Path, rounds: int = ROUNDS) -> list[GoalResult]:
    """Return medians over ``rounds`` starts, the server and its peer in turns, after two starts that profile the
    file."""
    return await asyncio.to_thread(_startup, examples, rounds)


def _startup(examples: Path, rounds: int) -> list[GoalResult]:
    with tempfile.TemporaryDirectory(prefix="accelopt-bench-") as name:
        folder = Path(name)
        shutil.copy(examples / FILE, folder)
        with_peer = shutil.which(PEER[0]) is not None
        for _ in range(2):
            _once(SERVER, folder, profiled=False)
        own: list[tuple[float, float]] = []
        peers: list[float] = []
        for _ in range(rounds):
            own.append(_once(SERVER, folder, profiled=True))
            if with_peer:
                peers.append(_once(PEER, folder, lens=False)[0])
    goals = ((INITIALIZE, 1.0), (LENS, 1.3))
    if not with_peer:
        why = f"{PEER[0]} is not on the path; here {', '.join(_seconds(t) for t in zip(*own, strict=True))}"
        return [not_measured(what, f"<= {goal:g}x pyright's initialize", why) for what, goal in goals]
    peer, rows = statistics.median(peers), []
    for (what, goal), times in zip(goals, zip(*own, strict=True), strict=True):
        ratio = statistics.median(times) / peer
        detail = f"{_seconds(times)}; pyright's initialize {_seconds(peers)}; {rounds} starts each, in turns"
        rows.append(GoalResult(what, f"<= {goal:g}x pyright's initialize", ratio, "x", ratio <= goal, detail))
    return rows


def _seconds(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.2f} s ({min(times):.2f}-{max(times):.2f})"


def _once(
    command: Sequence[str], folder: Path, *, profiled: bool = False, lens: bool = True
) -> tuple[float, float]:
    """Seconds from the start of a server to its first answer and to the first lens with a time; with ``profiled`` the
    first one counts, otherwise one after the whole profile."""
    environment = {
        **os.environ,
        "ACCELOPT_DB": str(folder / "memory.db"),
        "ACCELOPT_CONFIG": str(folder / "none"),
    }
    file, clock = folder / FILE, time.perf_counter()
    client = StdioEditor(folder, environment, command)
    try:
        client.initialize(folder, _CAPABILITIES)
        answered = time.perf_counter() - clock
        client.notify("initialized")
        if lens:
            uri = client.open(file)
            while not (title := timed_title(client.lens_titles(uri))) or (
                not profiled and "profiling" in title
            ):
                time.sleep(0.005)
        lens_time = time.perf_counter() - clock
        client.ask("shutdown", None)
        client.send({"method": "exit"})
    finally:
        client.close()
    return answered, lens_time
