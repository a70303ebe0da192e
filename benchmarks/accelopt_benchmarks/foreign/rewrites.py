"""Searches kernels for faster versions without a model: naive kernels, planted slowdowns, kernels of others."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from accelopt_benchmarks.checkout import REWRITE_CORPUS
from accelopt_benchmarks.foreign.library_files import copy_package, run_accelopt
from accelopt_benchmarks.foreign.triton_bench import FILES as TRITON_BENCH
from accelopt_benchmarks.result import GoalResult

#: ``own`` are files given by name. Every sixth file of TritonBench-G, by name, is held out.
RewriteSet = Literal["naive", "planted", "library", "tritonbench", "tritonbench-held-out", "own"]
_HELD_OUT_EVERY = 6

#: The gain from which on a rewrite counts.
_GAIN = 1.10
#: The share of a set that should get a suggestion.
_GOALS: dict[RewriteSet, float] = {
    "naive": 0.8, "planted": 1.0, "library": 0.8, "tritonbench": 0.3, "tritonbench-held-out": 0.3,
}  # fmt: skip


@dataclass(frozen=True)
class RewriteFile:
    """A file to search.

    ``package`` is the folder to copy it in, so that its imports work; None for a file alone.
    """

    set: RewriteSet
    path: Path
    package: Path | None = None


@dataclass(frozen=True)
class RewriteOutcome:
    """``us`` is the original's time, None without one.

    ``speedup`` is that of the best checked suggestion; ``at`` says what for where that is not the profiled case.
    ``rule`` is where it is from and ``diff`` its text; ``tried`` candidates in ``seconds``. ``finding`` stands on the
    planted line: None without one, and "" where nothing is planted. ``why`` tells what became of the candidates where
    nothing is offered, or the error.
    """

    file: str
    set: RewriteSet
    finding: str | None
    us: float | None
    speedup: float | None
    rule: str
    summary: str
    diff: str
    tried: int
    seconds: float
    why: str
    at: str = ""

    @property
    def improved(self) -> bool:
        return self.speedup is not None and self.speedup >= _GAIN


def rewrite_files(sets: Sequence[RewriteSet], data: Sequence[Path]) -> list[RewriteFile]:
    """Return the files of ``sets``; ``data`` are checkouts and a site-packages folder.

    Raises:
        FileNotFoundError: a file is in none of them.
    """
    planted = _planted()
    chosen_files: list[RewriteFile] = []
    for path in sorted(REWRITE_CORPUS.glob("*.py")):
        chosen_files.append(RewriteFile("planted" if path.stem in planted else "naive", path))
    if "library" in sets:
        listed = json.loads(files(__package__).joinpath("rewrite_files.json").read_text("utf-8"))["files"]
        chosen_files += [_library_file(row, data) for row in listed]
    folder = next((d / TRITON_BENCH for d in data if (d / TRITON_BENCH).is_dir()), None)
    if folder is None and {"tritonbench", "tritonbench-held-out"} & {*sets}:
        raise FileNotFoundError("give a checkout of thunlp/TritonBench with --data")
    for place, path in enumerate(sorted(folder.glob("*.py")) if folder is not None else ()):
        held_out = place % _HELD_OUT_EVERY == 0
        chosen_files.append(RewriteFile("tritonbench-held-out" if held_out else "tritonbench", path))
    return [file for file in chosen_files if file.set in sets]


def _library_file(row: dict[str, Any], data: Sequence[Path]) -> RewriteFile:
    path = Path(row["path"])
    folder = next((d for d in data if (d / path).is_file()), None)
    if folder is None:
        raise FileNotFoundError(f"{path} is in no folder of --data: {row['from']}")
    return RewriteFile("library", folder / path, folder / path.parts[0] if row["package"] else None)


def _planted() -> dict[str, list[str]]:
    planted: dict[str, list[str]] = json.loads((REWRITE_CORPUS / "planted.json").read_text("utf-8"))
    return planted


async def search_files(
    chosen: Sequence[RewriteFile], budget: str, python: str | None, work: Path
) -> AsyncGenerator[RewriteOutcome, None]:
    """Yield one file after the other: each search may use the whole machine, as a person's does. What one
    search learned is not known to the next, nor is what the user's memory holds."""
    planted = _planted()
    for number, file in enumerate(chosen):
        place = work / str(number)
        place.mkdir()
        environment = {"ACCELOPT_DB": str(place / "memory.db")}
        if file.package is None:
            copy = Path(shutil.copy(file.path, place))
        else:
            inside = file.path.relative_to(file.package)
            copy = copy_package(file.package, place / file.package.name) / inside
            await run_accelopt(["problem", str(copy)], python, environment)
        finding: str | None = ""
        if file.set == "planted":
            finding = await _finding_on(copy, planted[copy.stem], python)
        yield await _searched(file.set, copy, finding, budget, python, environment)


async def _finding_on(path: Path, texts: Sequence[str], python: str | None) -> str | None:
    """Return the code of the first finding of a profile on a line that holds one of ``texts``."""
    _, printed, _ = await run_accelopt(["profile", str(path), "--target", "h100", "--json"], python)
    lines = path.read_text("utf-8").splitlines()
    numbers = {n for n, line in enumerate(lines, 1) if any(text in line for text in texts)}
    try:
        findings = [f for kernel in json.loads(printed)["kernels"] for f in kernel["findings"]]
    except (ValueError, KeyError):
        return None
    return next((f["code"] for f in findings if f["line"] in numbers), None)


async def _searched(
    group: RewriteSet,
    path: Path,
    finding: str | None,
    budget: str,
    python: str | None,
    environment: dict[str, str],
) -> RewriteOutcome:
    began = time.monotonic()
    command = ["optimize", str(path), "--target", "h100", "--no-model", "--budget", budget, "--json"]
    code, printed, log = await run_accelopt(command, python, environment)
    seconds = time.monotonic() - began
    try:
        report: dict[str, Any] = json.loads(printed)
        suggestions: list[dict[str, Any]] = report["suggestions"]
        us: float | None = report["baseline"]["us"]
    except (ValueError, KeyError, TypeError):
        why = (log.strip().splitlines() or [f"exit code {code}"])[-1]
        return RewriteOutcome(
            path.name,
            group,
            finding=finding,
            us=None,
            speedup=None,
            rule="",
            summary="",
            diff="",
            tried=0,
            seconds=seconds,
            why=why,
        )
    best = max(suggestions, key=lambda s: float(s["speedup"]["value"] or 0), default=None)
    tried = report["tried"]
    if best is None:
        why = why_none(log)
        return RewriteOutcome(
            path.name,
            group,
            finding=finding,
            us=us,
            speedup=None,
            rule="",
            summary="",
            diff="",
            tried=tried,
            seconds=seconds,
            why=why,
        )
    gain, rule, summary, diff = best["speedup"]["value"], best["origin"], best["summary"], best["diff"]
    at = best["speedup"].get("at", "")
    return RewriteOutcome(
        path.name,
        group,
        finding=finding,
        us=us,
        speedup=gain,
        rule=rule,
        summary=summary,
        diff=diff,
        tried=tried,
        seconds=seconds,
        why="",
        at=at,
    )


def why_none(log: str) -> str:
    """Tell from the lines of a search what became of its candidates."""
    outcomes = Counter(re.findall(r"^ *\d+ (faster|slower|unclear|failed)\b", log, re.M))
    refused = re.findall(r"^ *refused by the gate: (.*)$", log, re.M)
    lines = log.strip().splitlines()
    if refused:
        return f"{len(refused)} refused by the gate: {refused[-1]}"
    if not outcomes:
        return lines[-1] if lines else "no rule applies"
    counts = ", ".join(f"{outcomes[name]} {name}" for name in sorted(outcomes))
    return f"estimated: {counts}; {lines[-1]}"


def rows(outcomes: Sequence[RewriteOutcome]) -> list[GoalResult]:
    """Count files with a checked suggestion, of those that give a number, by set; planted slowdowns that a finding
    points at."""
    table: list[GoalResult] = []
    for group in dict.fromkeys(o.set for o in outcomes):
        members = [o for o in outcomes if o.set == group]
        timed = [o for o in members if o.us is not None]
        if group == "planted":
            pointed = sum(o.finding is not None for o in members)
            what, unit = "planted slowdowns pointed at on their line", f"of {len(members)}"
            table.append(GoalResult(what, "all", pointed, unit, pointed == len(members)))
        improved, share = sum(o.improved for o in timed), _GOALS.get(group)
        what = f"set {group!r}: files with a checked suggestion of at least {_GAIN:.2f}x"
        goal = "none set" if share is None else f">= {100 * share:.0f} %"
        met = None if share is None else improved >= share * len(timed)
        detail = f"{len(members) - len(timed)} more give no number" if len(timed) < len(members) else ""
        table.append(GoalResult(what, goal, improved, f"of {len(timed)}", met, detail))
    return table
