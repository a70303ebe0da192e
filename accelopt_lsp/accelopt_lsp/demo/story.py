"""Runs the tour: an NKI kernel made faster, what that teaches for another, and a Triton kernel made faster."""

from __future__ import annotations

import difflib
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lsprotocol import types
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.demo.editor import Editor, timed_title
from accelopt_lsp.features.wording import duration_interval, speedup, times
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.plain import from_plain
from accelopt_profiling.source_text import source_lines

FIRST, SECOND = "nki_silu.py", "nki_gelu_gate.py"
TRITON, TRITON_PROBLEM = "triton_add.py", "triton_add_problem.py"
FILES = (FIRST, SECOND, TRITON, TRITON_PROBLEM)
#: What a Triton kernel needs besides what the tour itself needs, by import name.
_TRITON_PACKAGES = ("torch", "triton")
_SUGGESTION = "refactor.rewrite.accelopt.suggestion"
_OPTIMIZE = "refactor.rewrite.accelopt.optimize"


@dataclass(frozen=True)
class Search:
    """How one search went: candidates tried and seconds until its first suggestion, and that suggestion."""

    candidates: int
    seconds: float
    first: Suggestion
    best: Suggestion


async def tell(console: Console, examples: Path) -> None:
    """Run the tour on copies of the ``examples``, with a memory of its own that is thrown away.

    Raises:
        EditorError: the server did not do what was waited for.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="accelopt-demo-") as name:
        folder = Path(name)
        for file in FILES:
            shutil.copy(examples / file, folder)
        database = folder / "memory.db"
        async with _editor(folder, database) as editor:
            await _first_kernel(console, editor, folder, database)
        async with _editor(folder, folder / "empty.db") as editor:
            without = await _search(editor, folder / SECOND, folder / "empty.db")
        async with _editor(folder, database) as editor:
            await _second_kernel(console, editor, folder=folder, database=database, without=without)
            await _triton_kernel(console, editor, folder, database)
    console.print(
        f"\nThe tour took {time.monotonic() - started:.0f} s. Nothing was written outside {name}, which is gone."
    )


@asynccontextmanager
async def _editor(folder: Path, database: Path) -> AsyncGenerator[Editor, None]:
    editor = Editor(folder, database)
    await editor.start()
    try:
        yield editor
    finally:
        await editor.stop()


async def _first_kernel(console: Console, editor: Editor, folder: Path, database: Path) -> None:
    path = folder / FIRST
    kernel = find_kernels(path.read_text()).kernels[0]
    console.rule(f"[bold]1. Open and save {FIRST}")
    uri = editor.open(path)
    editor.save(uri)
    clock = time.monotonic()
    titles = await editor.until("The first numbers", _has_time, uri)
    console.print(
        f"First numbers {time.monotonic() - clock:.2f} s after the save. The lens above {kernel.name}:\n"
    )
    _line(console, (timed_title(titles), "cyan"))
    titles = await editor.until("The check against the reference", _is_settled, uri)
    console.print(f"\nWith the result checked, {time.monotonic() - clock:.2f} s after the save:\n")
    await _show(console, editor, uri, titles)

    console.rule("[bold]2. Code actions, and the search for faster versions")
    for action in await editor.actions(uri, kernel.line):
        _line(console, action.title)
    search = await _optimize(editor, uri, kernel.line, database, to_its_end=True)
    console.print(f"\nAfter the search ({search.candidates} candidates to the first checked one):\n")
    for action in await editor.actions(uri, kernel.line):
        if action.kind == _SUGGESTION:
            _line(console, (action.title, "green"))

    console.rule("[bold]3. The best suggestion")
    command = await _apply_best(console, editor, uri, kernel.line)
    _numbers(console, search.best)

    console.rule("[bold]4. Accept")
    await editor.execute(command)
    editor.save(uri)
    pair = await _saved_pair(editor, uri, database)
    console.print(f"The memory, {Path(database).name}, now has this row:\n")
    _row(console, pair)
    titles = await editor.until("Numbers for the accepted version", _is_settled, uri)
    console.print("\nThe lens, after saving the accepted version:\n")
    _line(console, (timed_title(titles), "cyan"))


async def _second_kernel(
    console: Console, editor: Editor, folder: Path, database: Path, without: Search
) -> None:
    console.rule(f"[bold]5. A different kernel: {SECOND}")
    path = folder / SECOND
    with_memory = await _search(editor, path, database)
    uri = path.as_uri()
    await _show(console, editor, uri, await editor.lens_titles(uri))
    table = Table(title="Candidates tried up to the first checked suggestion", title_justify="left")
    for heading in ("", "tried", "seconds", "speedup (estimated)"):
        table.add_column(heading)
    table.add_column("origin", overflow="fold")
    for label, search in (("empty memory", without), ("with the accepted pair", with_memory)):
        table.add_row(
            label,
            str(search.candidates),
            f"{search.seconds:.1f}",
            speedup(search.first.speedup),
            search.first.origin,
        )
    console.print(table)
    _numbers(console, with_memory.best)


async def _triton_kernel(console: Console, editor: Editor, folder: Path, database: Path) -> None:
    console.rule(f"[bold]6. A Triton kernel: {TRITON}")
    missing = [name for name in _TRITON_PACKAGES if find_spec(name) is None]
    if missing:
        _line(
            console,
            f"Left out: no {' and no '.join(missing)} here. pip install 'accelopt-lsp[triton]' adds what it needs.",
        )
        return
    path = folder / TRITON
    uri = editor.open(path)
    editor.save(uri)
    clock = time.monotonic()
    titles = await editor.until("The check against PyTorch", _is_settled, uri)
    console.print(
        f"Emulated and checked against {TRITON_PROBLEM}, {time.monotonic() - clock:.1f} s after the save:\n"
    )
    await _show(console, editor, uri, titles)
    kernel = find_kernels(path.read_text()).kernels[0]
    search = await _optimize(editor, uri, kernel.line, database)
    console.print(f"\nThe first checked faster version, {search.seconds:.1f} s after Optimize:\n")
    await _apply_best(console, editor, uri, kernel.line)
    _numbers(console, search.best)


async def _apply_best(console: Console, editor: Editor, uri: str, line: int) -> types.Command:
    """Apply the best suggestion, unsaved, and show it. Returns the command that accepts it."""
    actions = await editor.actions(uri, line)
    action = await editor.resolve(next(a for a in actions if a.kind == _SUGGESTION))
    assert action.edit is not None
    assert action.command is not None
    before = editor.text(uri)
    editor.apply(action.edit)
    _diff(console, before, editor.text(uri))
    return action.command


async def _search(editor: Editor, path: Path, database: Path) -> Search:
    uri = editor.open(path)
    await editor.until("Numbers", _is_settled, uri)
    kernel = find_kernels(path.read_text()).kernels[0]
    return await _optimize(editor, uri, kernel.line, database)


async def _optimize(
    editor: Editor, uri: str, line: int, database: Path, *, to_its_end: bool = False
) -> Search:
    """Search until the first suggestion, or ``to_its_end``."""
    action = next(a for a in await editor.actions(uri, line) if a.kind == _OPTIMIZE)
    assert action.command is not None
    clock = time.monotonic()
    await editor.execute(action.command)
    await editor.until("A checked faster version", lambda titles: any(" checked: " in t for t in titles), uri)
    seconds = time.monotonic() - clock
    if not to_its_end:
        await editor.execute(types.Command("Cancel", "accelopt.server.cancel", arguments=[uri]))
    await editor.until("The end of the search", lambda titles: "Cancel" not in titles, uri)
    offered = [a for a in await editor.actions(uri, line) if a.kind == _SUGGESTION and a.data]
    return _read_search(database, offered[0], seconds)


def _read_search(database: Path, best: types.CodeAction, seconds: float) -> Search:
    """Return what the run's own record says: the events before its first suggestion."""
    data: Any = best.data  # a dictionary, or what lsprotocol made of it
    best_id = data["id"] if isinstance(data, dict) else data.id
    with Memory.open(database, read_only=True) as memory:
        suggestion = _suggestion(memory, best_id)
        run = memory.run_log.run(suggestion.run)
        assert run is not None
        tried = 0
        for event in memory.run_log.events(suggestion.run):
            if event.kind == "candidate tried":
                tried += 1
            if event.kind == "suggestion":
                return Search(tried, seconds, _suggestion(memory, event.data["id"]), suggestion)
    raise AssertionError("a run with a suggestion has an event for it")


def _suggestion(memory: Memory, suggestion_id: str) -> Suggestion:
    stored = memory.suggestion(suggestion_id)
    assert stored is not None
    return from_plain(Suggestion, stored.body)


async def _saved_pair(editor: Editor, uri: str, database: Path) -> Pair:
    def saved(_: list[str]) -> bool:
        with Memory.open(database, read_only=True) as memory:
            return bool(memory.pairs())

    await editor.until("The row in the memory", saved, uri)
    with Memory.open(database, read_only=True) as memory:
        return memory.pairs()[0]


def _has_time(titles: list[str]) -> bool:
    return bool(timed_title(titles))


def _is_settled(titles: list[str]) -> bool:
    title = timed_title(titles)
    return bool(title) and "..." not in title and "not checked" not in title


async def _show(console: Console, editor: Editor, uri: str, titles: list[str]) -> None:
    for title in titles:
        _line(console, "lens         ", (title, "cyan"))
    lines = source_lines(editor.text(uri))
    for line, text in await editor.hints(uri):
        code = lines[line - 1].strip()
        _line(console, f"hint    {line:3}  ", f"{code[:46]:46}  ", (text.strip(), "dim"))
    for diagnostic in editor.diagnostics.get(uri, []):
        _line(
            console,
            f"finding {diagnostic.range.start.line + 1:3}  ",
            (f"{diagnostic.code}: ", "yellow"),
            diagnostic.message,
        )


def _line(console: Console, *parts: str | tuple[str, str]) -> None:
    """One line of what an editor shows; none of it is markup."""
    console.print(Text.assemble("    ", *parts), highlight=False, soft_wrap=True)


def _diff(console: Console, before: str, after: str) -> None:
    lines = difflib.unified_diff(
        source_lines(before), source_lines(after), "before", "after", lineterm="", n=2
    )
    text = Syntax("", "diff", theme="ansi_dark", background_color="default").highlight("\n".join(lines))
    console.print(text, soft_wrap=True)


def _numbers(console: Console, suggestion: Suggestion) -> None:
    title = Text(f"\n{suggestion.summary} ({suggestion.origin})")
    console.print(title, soft_wrap=True)
    table = Table("what", "value")
    table.add_row("time before", duration_interval(suggestion.slow))
    table.add_row("time after", duration_interval(suggestion.fast))
    table.add_row("speedup", speedup(suggestion.speedup))
    table.add_row("gate", f"accepted, {len(suggestion.gate.checks)} checks executed")
    console.print(table)


def _row(console: Console, pair: Pair) -> None:
    table = Table(show_header=False)
    for name in (
        "id",
        "kernel",
        "dialect",
        "target",
        "origin",
        "summary",
        "slow_hash",
        "fast_hash",
        "created",
    ):
        table.add_row(name, str(getattr(pair, name)))
    table.add_row("speedup", f"{times(pair.speedup)} ({pair.fast.known})" if pair.speedup else "not measured")
    table.add_row("receipts", ", ".join(pair.receipts))
    console.print(table)
