"""Count what four walks enter: files and functions of this program, parses of a text, encodings of a measurement.

Only the command's own process is counted, not the steps that it starts in others.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelopt_benchmarks.result import GoalResult, not_measured
from accelopt_lsp.own_process import own_process
from accelopt_lsp.resources import read_file
from accelopt_lsp.service.process import ProcessService
from accelopt_lsp.settings.load import load_settings

FILE = "triton_add.py"
#: What the last command printed.
OUTPUT = "printed.json"
#: Shorter texts are expressions, and no files.
_SHORTEST = 200
#: The name of each walk, its command, and how often it may parse a text on average: None where no goal is set.
_WALKS: tuple[tuple[str, tuple[str, ...], float | None], ...] = (
    ("a second profile", ("profile", FILE), 3.0),
    ("a search of six candidates", ("optimize", FILE, "--no-model", "--budget", "6", "--json"), 1.0),
    ("an accept", ("accept", "ID"), 1.0),
)
#: Runs in the process before the command: counts until it ends, and writes to the file of the first argument.
_COUNTING = f"""
import atexit, collections, json, pickle, sys, threading
texts, functions, encodings = collections.Counter(), set(), collections.Counter()
def holds(value):
    if type(value).__name__ == "FileMeasurement":
        return value.complete
    if isinstance(value, dict):
        return {{"latency", "correctness", "quantities"}} <= value.keys() or any(map(holds, value.values()))
    return isinstance(value, (list, tuple)) and any(map(holds, value))
def counted(module):
    plain = module.dumps
    def dumps(value, *args, **options):
        encodings[module.__name__] += holds(value)
        return plain(value, *args, **options)
    module.dumps = dumps
counted(json), counted(pickle)
def compiled(event, arguments):
    if event == "compile" and arguments[1] == "<unknown>" and isinstance(arguments[0], (str, bytes)):
        if len(arguments[0]) > {_SHORTEST}:
            texts[arguments[0]] += 1
def entered(frame, event, argument):
    if event == "call":
        functions.add(frame.f_code)
def write(path=sys.argv.pop(1)):
    sys.setprofile(None)
    own = [c for c in functions if "accelopt_" in c.co_filename and "site-packages" not in c.co_filename]
    counts = dict(
        parses=sum(texts.values()), texts=len(texts), functions=len(own), files=len({{c.co_filename for c in own}}),
        encodings=dict(encodings),
    )
    open(path, "w").write(json.dumps(counts))
atexit.register(write)
sys.addaudithook(compiled)
threading.setprofile(entered)
sys.setprofile(entered)
"""


async def walks(examples: Path) -> list[GoalResult]:
    """Return for each walk how often it parses each text, with the counts of all."""
    with tempfile.TemporaryDirectory(prefix="accelopt-bench-") as name:
        folder = Path(name)
        for file in examples.glob(f"{Path(FILE).stem}*.py"):
            shutil.copy(file, folder)
        return [*await asyncio.to_thread(_walks, folder), await _save(folder)]


async def _save(folder: Path) -> GoalResult:
    """Return how often the editor's service encodes the measurement of one save."""
    what, goal = "a save: encodings of its measurement", "<= 3"
    python, option, code = own_process("accelopt_lsp.service.process_main")
    result, file = folder / "counts.json", folder / FILE
    result.unlink(missing_ok=True)
    settings = load_settings(file, environ=_environment(folder))
    service = ProcessService(command=[python, option, f"{_COUNTING}\n{code}", str(result)])
    try:
        request = replace(read_file(file, settings), key="a save")
        async with aclosing(service.profile(request)) as growing:
            complete = [measurement async for measurement in growing][-1].complete
    finally:
        await service.close()
    if not complete or not result.is_file():
        return not_measured(what, goal, "the service ended before its end")
    encodings: dict[str, int] = json.loads(result.read_text(encoding="utf-8"))["encodings"]
    total = sum(encodings.values())
    detail = ", ".join(f"{count} by {name}" for name, count in encodings.items())
    return GoalResult(
        what, goal, total, "", total <= 3, f"{detail}: a receipt, the stored profile, a message"
    )


def _walks(folder: Path) -> list[GoalResult]:
    rows: list[GoalResult] = []
    _counts(folder, ("profile", FILE))
    suggestion = ""
    for what, words_of_command, goal in _WALKS:
        arguments = [suggestion if word == "ID" else word for word in words_of_command]
        counts = _counts(folder, arguments)
        suggestion = _first_suggestion(folder) or suggestion
        words = "none set" if goal is None else f"<= {goal:g}"
        if counts is None:
            rows.append(not_measured(what, words, f"accelopt {arguments[0]} ended before its end"))
            continue
        each = counts["parses"] / max(1, counts["texts"])
        detail = "{parses} parses of {texts} texts; enters {functions} functions of {files} files".format(
            **counts
        )
        rows.append(
            GoalResult(
                f"{what}: parses of a text",
                words,
                each,
                "",
                None if goal is None else each <= goal,
                detail,
            )
        )
    return rows


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "ACCELOPT_DB": str(folder / "memory.db")}


def _first_suggestion(folder: Path) -> str | None:
    """Return the id of the best suggestion that the last command printed; None where it printed none."""
    try:
        printed = json.loads((folder / OUTPUT).read_text(encoding="utf-8"))
    except ValueError:
        return None
    return next((suggestion["id"] for suggestion in printed.get("suggestions", ())), None)


def _counts(folder: Path, arguments: Sequence[str]) -> dict[str, Any] | None:
    """Run a command in ``folder``; return what it counted, None where it failed."""
    python, option, code = own_process("accelopt_lsp.cli.main")
    result = folder / "counts.json"
    result.unlink(missing_ok=True)
    with (folder / OUTPUT).open("wb") as output:
        done = subprocess.run(
            [python, option, f"{_COUNTING}\n{code}", str(result), *arguments],
            cwd=folder, env=_environment(folder),
            stdout=output, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    if done.returncode != 0 or not result.is_file():
        return None
    counts: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return counts
