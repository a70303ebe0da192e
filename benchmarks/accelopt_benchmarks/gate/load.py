"""Verdicts on a busy machine beside those on a quiet one: they have to be the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from accelopt_benchmarks.gate.detection import CorpusVerdict
from accelopt_benchmarks.result import GoalResult


@contextmanager
def busy_processes(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run so many processes that do nothing but take processor time, until the body ends."""
    running: list[subprocess.Popen[bytes]] = []
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
            running.append(process)
        yield running


def read_verdicts(file: Path) -> dict[tuple[str, str], bool]:
    """Return which files of which cases were accepted, of what ``accelopt bench gate --json`` printed.

    Raises:
        ValueError: it is something else.
    """
    try:
        cases = json.loads(file.read_text(encoding="utf-8"))["cases"]
        return {(c["case"], c["file"]): bool(c["accepted"]) for c in cases}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} holds no verdicts ({type(error).__name__}: {error})") from None


def compared(judged: Sequence[CorpusVerdict], before: dict[tuple[str, str], bool], load: int) -> GoalResult:
    """Return how many verdicts differ from those of an earlier run."""
    both = [j for j in judged if (j.case, j.file) in before]
    other = [f"{j.case}/{j.file}" for j in both if before[j.case, j.file] is not j.accepted]
    how = f"of {len(both)}, with {load} busy processes" + (f": {', '.join(other)}" if other else "")
    return GoalResult(
        "verdicts other than before", "0", len(other), "verdicts", bool(both) and not other, how
    )
