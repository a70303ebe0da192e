"""Measures response times: first numbers after a save, and answers while the server works.

Measured from outside, through a real server over stdio, as an editor would see it.
"""

from __future__ import annotations

import asyncio
import gc
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from accelopt_benchmarks.result import GoalResult
from accelopt_lsp.demo.editor import Editor, EditorError, timed_title
from accelopt_profiling.kernels import find_kernels

SAVES = 12
SOFTMAX, SILU = "triton_softmax.py", "nki_silu.py"


async def first_numbers(examples: Path) -> list[GoalResult]:
    """Return medians over ``SAVES`` saves, each of a kernel with one more statement in it, the server being warm."""
    rows = []
    for file, goal_ms, name in (
        (SOFTMAX, 300.0, "save to first numbers, Triton softmax, warm"),
        (SILU, 1000.0, "save to first numbers, NKI silu 4096x7168"),
    ):
        async with _workspace(examples) as (editor, folder):
            uri = editor.open(folder / file)
            await editor.until("Numbers", _settled, uri, 90)
            original = editor.text(uri)
            took = []
            for number in range(SAVES):
                editor.edit(uri, _changed(original, number))
                editor.save(uri)
                clock = time.perf_counter()
                await _until_numbers(editor, uri)
                took.append(1000 * (time.perf_counter() - clock))
                await editor.until("The end of the profile", _settled, uri, 90)
        spread = f"{SAVES} saves, {min(took):.0f}-{max(took):.0f} ms"
        median = statistics.median(took)
        rows.append(GoalResult(name, f"median <= {goal_ms:.0f} ms", median, "ms", median <= goal_ms, spread))
    return rows


async def answers(examples: Path, seconds: float = 15.0) -> list[GoalResult]:
    """Return the 99th percentiles of lens, hover and code action requests while a profile and a search run."""
    async with _workspace(examples) as (editor, folder):
        silu, softmax = editor.open(folder / SILU), editor.open(folder / SOFTMAX)
        for uri in (silu, softmax):
            await editor.until("Numbers", _settled, uri, 90)
        line = find_kernels(editor.text(silu)).kernels[0].line
        optimize = next(a for a in await editor.actions(silu, line) if a.title.startswith("Optimize"))
        assert optimize.command is not None
        await editor.execute(optimize.command)
        original = editor.text(softmax)
        gc.freeze()  # the pauses of this client are not the server's
        took: dict[str, list[float]] = {"lens": [], "hover": [], "action": []}
        end, saved, number = time.monotonic() + seconds, 0.0, 0
        while time.monotonic() < end:
            if time.monotonic() - saved > 1.0:
                number += 1
                editor.edit(softmax, _changed(original, number))
                editor.save(softmax)
                saved = time.monotonic()
            for uri in (silu, softmax):
                for name, ask in (
                    ("lens", editor.lenses(uri)),
                    ("hover", editor.hover(uri, line)),
                    ("action", editor.actions(uri, line)),
                ):
                    clock = time.perf_counter()
                    await ask
                    took[name].append(1000 * (time.perf_counter() - clock))
                    await asyncio.sleep(0.005)
    gc.unfreeze()
    rows = []
    for name, times in took.items():
        p99 = statistics.quantiles(times, n=100)[98]
        detail = f"{len(times)} requests, median {statistics.median(times):.1f} ms, worst {max(times):.1f} ms"
        what = f"{name} answers during a profile and an optimization"
        rows.append(GoalResult(what, "p99 <= 10 ms", p99, "ms", p99 <= 10, detail))
    return rows


@asynccontextmanager
async def _workspace(examples: Path) -> AsyncGenerator[tuple[Editor, Path], None]:
    with tempfile.TemporaryDirectory(prefix="accelopt-bench-") as name:
        folder = Path(name)
        for file in examples.glob("*.py"):
            shutil.copy(file, folder)
        editor = Editor(folder, folder / "memory.db")
        await editor.start()
        try:
            yield editor, folder
        finally:
            await editor.stop()


def _changed(text: str, number: int) -> str:
    """Return the text with one more statement before the last line of its first kernel, so that nothing
    remembered fits."""
    kernel = find_kernels(text).kernels[0]
    lines = text.splitlines(keepends=True)
    last = lines[kernel.end_line - 1]
    indent = last[: len(last) - len(last.lstrip())]
    lines.insert(kernel.end_line - 1, f"{indent}revision = {number}\n")
    return "".join(lines)


def _settled(titles: list[str]) -> bool:
    return _numbers(titles) and not any(word in timed_title(titles) for word in ("profiling", "not checked"))


def _numbers(titles: list[str]) -> bool:
    title = timed_title(titles)
    return bool(title) and not title.startswith("before this edit")


async def _until_numbers(editor: Editor, uri: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not _numbers(await editor.lens_titles(uri)):
        if time.monotonic() > end:
            raise EditorError(f"No numbers for {uri} within {seconds:g} s.")
        await asyncio.sleep(0.002)
