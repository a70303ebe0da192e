"""Measure the answers about a file of 5,000 lines with 50 kernels of others, as three editors ask for them."""

from __future__ import annotations

import ast
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_benchmarks.server.stdio_editor import StdioEditor
from accelopt_profiling.kernels import find_kernels

KERNELS, LINES, SEED = 50, 5_000, 37
#: Lines of the longest file that is drawn, and what its imports may name.
_LONGEST = 400
_PACKAGES = {"torch", "triton", "math", "numpy", "typing", "functools", "itertools", "neuronxcc", "nki"}
_ROUNDS, _GOAL_MS = 60, 20.0
#: Seconds after which the file's profile is not waited for: the answers are about what is known by then.
_PROFILE_S = 240.0
_RICH: dict[str, Any] = {
    "codeAction": {
        "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor.rewrite", "source"]}},
        "resolveSupport": {"properties": ["edit", "command"]}, "dataSupport": True, "disabledSupport": True,
    },
    "hover": {"contentFormat": ["markdown", "plaintext"]}, "inlayHint": {}, "codeLens": {},
    "completion": {"completionItem": {"snippetSupport": True, "documentationFormat": ["markdown"]}},
    "signatureHelp": {"signatureInformation": {"documentationFormat": ["markdown"]}},
    "publishDiagnostics": {"relatedInformation": True, "codeDescriptionSupport": True},
}  # fmt: skip
#: What three editors say of themselves, and the lines around the cursor for which each asks hints (None: all).
EDITORS: dict[str, tuple[dict[str, Any], int | None]] = {
    "VS Code": (
        {
            "general": {"positionEncodings": ["utf-16"]}, "textDocument": _RICH,
            "workspace": {"codeLens": {"refreshSupport": True}, "inlayHint": {"refreshSupport": True}},
            "window": {"workDoneProgress": True},
        },
        60,
    ),
    "Neovim": ({"general": {"positionEncodings": ["utf-8", "utf-16"]}, "textDocument": _RICH}, None),
    "Eglot": ({"textDocument": {"hover": {"contentFormat": ["plaintext"]}, "inlayHint": {}}}, 60),
}  # fmt: skip


def large_file_text(data: Sequence[Path]) -> str | None:
    """Return files below ``data`` by lot, one after the other, as one of ``LINES`` lines with ``KERNELS`` kernels at
    least; None where there are too few that need no package of their own and share no name."""
    files = sorted(path for folder in data for path in folder.rglob("*.py"))
    random.Random(SEED).shuffle(files)
    names: set[str] = set()
    texts: list[str] = []
    kernels = 0
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        if text.count("\n") > _LONGEST or not (count := len(find_kernels(text).kernels)):
            continue
        if (own := _names_of(text)) is None or own & names:
            continue
        names |= own
        texts.append(text)
        kernels += count
        lines = sum(text.count("\n") + 2 for text in texts)
        if kernels >= KERNELS and lines >= LINES:
            return "\n\n".join(texts) + "\n"
    return None


def _names_of(text: str) -> set[str] | None:
    """Return the functions and classes of a file; None where it imports what a reader may not have."""
    names: set[str] = set()
    for statement in ast.parse(text).body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            module = getattr(statement, "module", None)
            imported = (
                [module or "."]
                if isinstance(statement, ast.ImportFrom)
                else [a.name for a in statement.names]
            )
            if any(name.partition(".")[0] not in _PACKAGES for name in imported):
                return None
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names.add(statement.name)
    return names


async def large_file(data: Sequence[Path]) -> list[GoalResult]:
    """Return the 50th and 95th percentile of each request, by editor."""
    return await asyncio.to_thread(_large_file, data)


def _large_file(data: Sequence[Path]) -> list[GoalResult]:
    goal = f"p95 <= {_GOAL_MS:g} ms"
    text = large_file_text(data)
    if text is None:
        return [
            not_measured("answers in a file of 50 kernels", goal, "give checkouts with kernels by --data")
        ]
    rows = []
    with tempfile.TemporaryDirectory(prefix="accelopt-bench-") as name:
        folder = Path(name)
        file = folder / "kernels.py"
        file.write_text(text, encoding="utf-8")
        lines, kernels = text.count("\n"), len(find_kernels(text).kernels)
        for editor, (capabilities, around) in EDITORS.items():
            times, timed = _asked(folder, file, capabilities, around)
            for request, took in times.items():
                p50, p95 = statistics.median(took), statistics.quantiles(took, n=20)[18]
                about = f"{lines} lines, {kernels} kernels of which {timed} had a time"
                detail = f"median {p50:.1f} ms, {len(took)} times; {about}"
                rows.append(GoalResult(f"{request}, {editor}", goal, p95, "ms", p95 <= _GOAL_MS, detail))
    return rows


def _asked(
    folder: Path, file: Path, capabilities: Mapping[str, Any], around: int | None
) -> tuple[dict[str, list[float]], int]:
    """Return the milliseconds of each request, asked at places by lot, an edit before every fourth round; and how many
    kernels had a time then."""
    environment = {
        **os.environ,
        "ACCELOPT_DB": str(folder / "memory.db"),
        "ACCELOPT_CONFIG": str(folder / "none"),
    }
    editor, times = StdioEditor(folder, environment), dict[str, list[float]]()
    lot = random.Random(SEED)
    try:
        editor.initialize(folder, capabilities)
        editor.notify("initialized")
        uri = editor.open(file)
        _until_profiled(editor, uri)
        timed = sum(" us" in title or " ms" in title for title in editor.lens_titles(uri))
        lines = file.read_text(encoding="utf-8").splitlines()
        calls = [n for n, line in enumerate(lines) if "tl." in line or "nl." in line or "nisa." in line]
        heads = [n for n, line in enumerate(lines) if line.startswith("def ")]
        document, version = {"uri": uri}, 1
        for number in range(_ROUNDS):
            line = lot.choice(calls)
            first = 0 if around is None else max(0, line - around // 2)
            last = len(lines) if around is None else first + around
            column = max(lines[line].find(name) for name in ("tl.", "nl.", "nisa.")) + 3
            requests: dict[str, tuple[str, dict[str, Any]]] = {
                "hover on a kernel": ("hover", {"position": _at(lot.choice(heads), 6)}),
                "hover on a call": ("hover", {"position": _at(line, column)}),
                "lens": ("codeLens", {}),
                "hints": ("inlayHint", {"range": {"start": _at(first, 0), "end": _at(last, 0)}}),
                "code actions": ("codeAction", {"range": {"start": _at(line, 0), "end": _at(line, 0)},
                                                "context": {"diagnostics": _found(editor, uri, line)}}),
                "completion": ("completion", {"position": _at(line, column)}),
                "signature": ("signatureHelp", {"position": _at(line, len(lines[line]))}),
            }  # fmt: skip
            if number % 4 == 3:  # a key that was pressed, at the end of the file
                version += 1
                end = _at(len(lines), 0)
                change = {"range": {"start": end, "end": end}, "text": "#"}
                clock = time.perf_counter()
                editor.notify(
                    "textDocument/didChange",
                    textDocument={**document, "version": version},
                    contentChanges=[change],
                )
                editor.ask("textDocument/codeLens", {"textDocument": document})
                times.setdefault("a key, then lens", []).append(1000 * (time.perf_counter() - clock))
            for what, (method, params) in requests.items():
                took = editor.timed(f"textDocument/{method}", {"textDocument": document, **params})
                times.setdefault(what, []).append(took)
        editor.ask("shutdown", None)
        editor.send({"method": "exit"})
    finally:
        editor.close()
    return times, timed


def _until_profiled(editor: StdioEditor, uri: str) -> None:
    end = time.monotonic() + _PROFILE_S
    while time.monotonic() < end:
        titles = editor.lens_titles(uri)
        if titles and not any("profiling" in t or "checking" in t or "not profiled" in t for t in titles):
            return
        time.sleep(0.2)


def _found(editor: StdioEditor, uri: str, line: int) -> list[dict[str, Any]]:
    return [f for f in editor.findings.get(uri, []) if f["range"]["start"]["line"] == line]


def _at(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}
