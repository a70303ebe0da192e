"""Measure what the server's processes hold: idle with ten open kernels, and over eight hours of work, compressed."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from accelopt_benchmarks.result import GoalResult
from accelopt_benchmarks.server.process_tree import Held, held, process_tree, role
from accelopt_benchmarks.server.stdio_editor import StdioEditor

OPEN_FILES, IDLE_S, IDLE_GOAL_MB = 10, 20.0, 120.0
#: What a person does in eight hours, by the issue's thousands: a round is an edit and what an editor asks after it.
ROUNDS, ROUNDS_PER_SAVE, ROUNDS_PER_SEARCH, SAMPLES = 3_000, 12, 500, 30
FILE, KERNEL = "nki_silu.py", "silu"
#: The growth over eight hours that is not told from none, of all processes together.
_FLAT_MB = 10.0
_CAPABILITIES = {"textDocument": {"codeLens": {}, "inlayHint": {}, "hover": {"contentFormat": ["markdown"]}}}
_SETTINGS = "[search]\ncandidates = 2\n"
_PATIENCE_S = 180.0


async def idle(examples: Path) -> list[GoalResult]:
    """Return the memory of each process, nothing having been asked for a while."""
    return await asyncio.to_thread(_idle, examples)


def _idle(examples: Path) -> list[GoalResult]:
    with _server(examples) as (editor, folder):
        kernels = [f for f in sorted(folder.glob("*.py")) if not f.stem.endswith("_problem")]
        files = [_copied(kernels[number % len(kernels)], number) for number in range(OPEN_FILES)]
        for uri in [editor.open(file) for file in files]:
            _until(editor, uri, _settled)
        time.sleep(IDLE_S)
        roles = _by_role(editor.pid)
    own = sum(roles[name].memory_mb for name in ("server", "parser"))
    detail = "; ".join(f"{name} {h.memory_mb:.0f} MB" for name, h in sorted(roles.items()))
    what = f"idle memory of server and parser, {len(files)} open kernels"
    return [
        GoalResult(what, f"<= {IDLE_GOAL_MB:g} MB", own, "MB", own <= IDLE_GOAL_MB, f"proportional; {detail}")
    ]


def _copied(file: Path, number: int) -> Path:
    """Return a further file with the same kernel, and its problem where that stands beside it."""
    copy = file.with_name(f"{file.stem}_{number}.py")
    shutil.copy(file, copy)
    problem = file.with_name(f"{file.stem}_problem.py")
    if problem.exists():
        shutil.copy(problem, file.with_name(f"{copy.stem}_problem.py"))
    return copy


async def eight_hours(examples: Path, rounds: int = ROUNDS) -> list[GoalResult]:
    """Return by how much each kind of thing that the processes hold grows from the first third to the last."""
    return await asyncio.to_thread(_eight_hours, examples, rounds)


def _eight_hours(examples: Path, rounds: int) -> list[GoalResult]:
    samples: list[dict[str, Held]] = []
    with _server(examples) as (editor, folder):
        uri = editor.open(folder / FILE)
        _until(editor, uri, _settled)
        text = (folder / FILE).read_text(encoding="utf-8")
        line = text[: text.index(f"def {KERNEL}")].count("\n")
        document = {"uri": uri}
        _search(editor, uri)  # the engine imports what searches need once
        saves, searches = 0, 1
        for number in range(rounds):
            changed = f"{text}\nrevision = {number // ROUNDS_PER_SAVE}\n# {number}\n"
            editor.notify(
                "textDocument/didChange", textDocument={**document, "version": number + 2},
                contentChanges=[{"text": changed}],
            )  # fmt: skip
            editor.ask(
                "textDocument/hover", {"textDocument": document, "position": {"line": line, "character": 5}}
            )
            everything = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
            editor.ask("textDocument/inlayHint", {"textDocument": document, "range": everything})
            editor.lens_titles(uri)
            if number % ROUNDS_PER_SAVE == 0:
                (folder / FILE).write_text(changed, encoding="utf-8")
                editor.notify("textDocument/didSave", textDocument=document)
                _until(editor, uri, _settled)
                saves += 1
            if number % ROUNDS_PER_SEARCH == ROUNDS_PER_SEARCH - 1:
                _search(editor, uri)
                searches += 1
            if number % (rounds // SAMPLES) == rounds // SAMPLES - 1:
                samples.append(_by_role(editor.pid))
        stored = (folder / "memory.db").stat().st_size / 2**20
    how = f"{rounds} edits with a hover, hints and lens each, {saves} saves, {searches} searches"
    return [*_growth(samples, how), GoalResult("database after it", "none set", stored, "MB", None, how)]


def _search(editor: StdioEditor, uri: str) -> None:
    argument = {"uri": uri, "kernel": KERNEL}
    editor.ask("workspace/executeCommand", {"command": "accelopt.server.optimize", "arguments": [argument]})
    _until(editor, uri, lambda titles: "Cancel" not in titles)


def _growth(samples: list[dict[str, Held]], how: str) -> Iterator[GoalResult]:
    """Yield the growth of memory, handles and threads from the first third of the samples to the last."""
    third = max(1, len(samples) // 3)
    kinds = (
        ("anonymous_mb", "memory", "MB", _FLAT_MB),
        ("handles", "file handles", "handles", 2),
        ("threads", "threads", "threads", 2),
    )
    for place, what, unit, flat in kinds:
        totals = [sum(getattr(h, place) for h in sample.values()) for sample in samples]
        grown = statistics.median(totals[-third:]) - statistics.median(totals[:third])
        parts = []
        for name in ("server", "parser", "engine", "worker", "step"):
            first, last = (
                [getattr(s[name], place) for s in part if name in s]
                for part in (samples[:third], samples[-third:])
            )
            if first and last:
                parts.append(f"{name} {statistics.median(first):.0f} to {statistics.median(last):.0f}")
        detail = f"{'; '.join(parts)}; {how}"
        yield GoalResult(
            f"growth of {what} in eight hours of work",
            f"<= {flat:g} {unit}",
            grown,
            unit,
            grown <= flat,
            detail,
        )


def _by_role(pid: int) -> dict[str, Held]:
    """Return what the processes below ``pid`` hold together, by what they are."""
    sums: dict[str, Held] = defaultdict(lambda: Held(0.0, 0.0, 0, 0))
    for process in process_tree(pid):
        sums[role(process)] = sums[role(process)].plus(held(process))
    return dict(sums)


@contextmanager
def _server(examples: Path) -> Iterator[tuple[StdioEditor, Path]]:
    with tempfile.TemporaryDirectory(prefix="accelopt-bench-") as name:
        folder = Path(name)
        for file in examples.glob("*.py"):
            shutil.copy(file, folder)
        (folder / "accelopt.toml").write_text(_SETTINGS)
        environment = {
            **os.environ,
            "ACCELOPT_DB": str(folder / "memory.db"),
            "ACCELOPT_CONFIG": str(folder / "none"),
        }
        editor = StdioEditor(folder, environment)
        try:
            editor.initialize(folder, _CAPABILITIES)
            editor.notify("initialized")
            yield editor, folder
            editor.ask("shutdown", None)
            editor.send({"method": "exit"})
        finally:
            editor.close()


def _settled(titles: list[str]) -> bool:
    busy = ("profiling", "checking", "before this edit", "not profiled")
    return bool(titles) and not any(word in title for title in titles for word in busy)


def _until(editor: StdioEditor, uri: str, condition: Callable[[list[str]], bool]) -> None:
    """Wait until the lenses of a file are as asked for.

    Raises:
        TimeoutError: they are not within ``_PATIENCE_S``.
    """
    end = time.monotonic() + _PATIENCE_S
    while not condition(titles := editor.lens_titles(uri)):
        if time.monotonic() > end:
            raise TimeoutError(f"the lenses of {uri} are still {titles}")
        time.sleep(0.02)
