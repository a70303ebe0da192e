"""Searches naive kernels and planted slowdowns for faster versions, without a model."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_benchmarks.checkout import REWRITE_CORPUS
from accelopt_benchmarks.foreign.command_line import run_accelopt
from accelopt_benchmarks.result import GoalResult

#: The gain from which on a rewrite counts.
_GAIN = 1.10


@dataclass(frozen=True)
class RewriteOutcome:
    """``speedup`` is that of the best proved suggestion, ``rule`` where it is from; ``tried`` candidates in
    ``seconds``. ``finding`` stands on the planted line: None without one, and "" where nothing is planted."""

    file: str
    finding: str | None
    speedup: float | None
    rule: str
    tried: int
    seconds: float
    trouble: str

    @property
    def improved(self) -> bool:
        return self.speedup is not None and self.speedup >= _GAIN


async def search_corpus(
    chosen: Sequence[Path], budget: str, python: str | None, work: Path
) -> AsyncGenerator[RewriteOutcome, None]:
    """One file after the other: each search may use the whole machine, as a person's does."""
    planted: dict[str, list[str]] = json.loads((REWRITE_CORPUS / "planted.json").read_text("utf-8"))
    for path in chosen:
        copy = Path(shutil.copy(path, work))
        texts = planted.get(path.stem)
        finding = "" if texts is None else await _finding_on(copy, texts, python)
        yield await _searched(copy, finding, budget, python)


async def _finding_on(path: Path, texts: Sequence[str], python: str | None) -> str | None:
    """The code of the first finding of a profile on a line that holds one of ``texts``."""
    _, printed, _ = await run_accelopt(["profile", str(path), "--target", "h100", "--json"], python)
    lines = path.read_text("utf-8").splitlines()
    numbers = {n for n, line in enumerate(lines, 1) if any(text in line for text in texts)}
    try:
        findings = [f for kernel in json.loads(printed)["kernels"] for f in kernel["findings"]]
    except (ValueError, KeyError):
        return None
    return next((f["code"] for f in findings if f["line"] in numbers), None)


async def _searched(path: Path, finding: str | None, budget: str, python: str | None) -> RewriteOutcome:
    began = time.monotonic()
    command = ["optimize", str(path), "--target", "h100", "--no-model", "--budget", budget, "--json"]
    code, printed, errors = await run_accelopt(command, python)
    seconds = time.monotonic() - began
    try:
        report: dict[str, Any] = json.loads(printed)
        suggestions: list[dict[str, Any]] = report["suggestions"]
    except (ValueError, KeyError):
        return RewriteOutcome(path.name, finding, None, "", 0, seconds, errors or f"exit code {code}")
    best = max(suggestions, key=lambda s: float(s["speedup"]["value"] or 0), default=None)
    if best is None:
        return RewriteOutcome(path.name, finding, None, "", report["tried"], seconds, errors)
    return RewriteOutcome(
        path.name, finding, best["speedup"]["value"], best["origin"], report["tried"], seconds, ""
    )


def rows(outcomes: Sequence[RewriteOutcome]) -> list[GoalResult]:
    """Files with a proved suggestion, and planted slowdowns that a finding points at."""
    planted = [o for o in outcomes if o.finding != ""]
    others = [o for o in outcomes if o.finding == ""]
    table: list[GoalResult] = []
    if planted:
        pointed, mended = sum(o.finding is not None for o in planted), sum(o.improved for o in planted)
        unit = f"of {len(planted)}"
        table += [
            GoalResult(
                "planted slowdowns pointed at on their line", "all", pointed, unit, pointed == len(planted)
            ),
            GoalResult("planted slowdowns mended", "all", mended, unit, mended == len(planted)),
        ]
    if others:
        improved = sum(o.improved for o in others)
        goal = 0.8 * len(others)
        what = f"kernels with a proved suggestion of at least {_GAIN:.2f}x"
        table.append(GoalResult(what, ">= 80 %", improved, f"of {len(others)}", improved >= goal))
    return table
