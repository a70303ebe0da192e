"""Writes results in FlashInfer-Bench's format, solutions and traces, and compares them with the data set's own.

The fields are those of flashinfer-bench's data models (``solution.py``, ``trace.py``, ``evaluation.py``, 0.1.2). What
the format has no place for stands in ``correctness.extra`` and ``environment``: how times are known, the gate's code.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known
from nkibench.kernel_sets.tasks import SetTask
from nkibench.metrics import SetResult

#: The gate's codes that the format has a status for; any other refusal is a wrong number there.
_STATUS = {
    "wrong-shape": "INCORRECT_SHAPE", "wrong-count": "INCORRECT_SHAPE", "wrong-layout": "INCORRECT_SHAPE",
    "wrong-dtype": "INCORRECT_DTYPE", "wrong-type": "INCORRECT_DTYPE", "kernel-raised": "RUNTIME_ERROR",
    "kernel-crashed": "RUNTIME_ERROR", "kernel-exited": "RUNTIME_ERROR", "out-of-memory": "RUNTIME_ERROR",
    "missing-package": "COMPILE_ERROR", "does-not-parse": "COMPILE_ERROR", "no-kernel": "COMPILE_ERROR",
    "no-entry": "COMPILE_ERROR", "timeout": "TIMEOUT",
}  # fmt: skip


@dataclass(frozen=True)
class AgainstSet:
    """One definition: the fastest right solution of the data set and the fastest version that was found, both as they
    are known here. ``solutions`` are the set's own that were run, ``recorded_ms`` the least time in the set's traces
    and ``recorded`` who took it on what hardware: another timer, for comparison only."""

    definition: str
    solutions: int
    fastest: str
    fastest_us: float | None
    best: str
    best_us: float | None
    known: str
    recorded_ms: float | None = None
    recorded: str = ""

    @property
    def speedup(self) -> float | None:
        return self.fastest_us / self.best_us if self.fastest_us and self.best_us else None


def write_flashinfer(
    folder: Path, tasks: Sequence[SetTask], results: Sequence[SetResult], target: str
) -> list[Path]:
    """Write ``solutions/`` and ``traces/`` below ``folder`` and return the files.

    A found version is a solution of its own with a trace; a right kernel whose time or whose reference's time is not
    known gets no trace, as the format has none for it.

    Raises:
        OSError: a file cannot be written.
    """
    by_name = {(task.group, task.name): task for task in tasks}
    lines: dict[tuple[str, str], list[str]] = {}
    written: list[Path] = []
    for result in results:
        task = by_name.get((result.group, result.name))
        if task is None or not task.solution:
            continue
        definition = str(task.solution["definition"])
        at = (result.group, definition)
        if (
            trace := _trace(
                task, result, latency=result.latency, solution=str(task.solution["name"]), target=target
            )
        ) is not None:
            lines.setdefault(at, []).append(trace)
        if result.text and result.steps:
            solution = _found(task, result)
            path = folder / "solutions" / _safe(result.group) / f"{_safe(solution['name'])}.json"
            written.append(_write(path, json.dumps(solution, indent=2) + "\n"))
            if (
                trace := _trace(task, result, latency=result.best, solution=solution["name"], target=target)
            ) is not None:
                lines.setdefault(at, []).append(trace)
    for (group, definition), traces in lines.items():
        path = folder / "traces" / _safe(group) / f"{_safe(definition)}.jsonl"
        written.append(_write(path, "\n".join(traces) + "\n"))
    return written


def against_set(data: Path, tasks: Sequence[SetTask], results: Sequence[SetResult]) -> list[AgainstSet]:
    """Return per definition how the best version that was found compares with the data set's own solutions."""
    by_name = {(task.group, task.name): task for task in tasks}
    groups: dict[str, list[SetResult]] = {}
    for result in results:
        task = by_name.get((result.group, result.name))
        if task is not None and task.solution and result.status == "passed" and result.latency.us:
            groups.setdefault(str(task.solution["definition"]), []).append(result)
    recorded = _recorded(data)
    rows = []
    for definition, mine in sorted(groups.items()):
        own = min(mine, key=lambda r: r.latency.us or math.inf)
        best = min(mine, key=lambda r: r.best.us or math.inf)
        least = recorded.get(definition, (None, ""))
        certainty = " and ".join(sorted({str(r.best.known) for r in mine}))
        rows.append(
            AgainstSet(
                definition, len(mine), own.name, own.latency.us, best.name, best.best.us, certainty, *least
            )
        )
    return rows


def _recorded(data: Path) -> dict[str, tuple[float | None, str]]:
    """Return per definition the least latency of the set's own traces, in ms, with its solution and hardware."""
    best: dict[str, tuple[float | None, str]] = {}
    for file in sorted(data.glob("traces/**/*.jsonl")):
        for line in file.read_text("utf-8", errors="replace").splitlines():
            try:
                trace = json.loads(line)
                definition, took = (
                    str(trace["definition"]),
                    float(trace["evaluation"]["performance"]["latency_ms"]),
                )
                who = f"{trace['solution']} on {trace['evaluation']['environment']['hardware']}"
            except (ValueError, KeyError, TypeError):
                continue
            if took < (best.get(definition, (None, ""))[0] or math.inf):
                best[definition] = took, who
    return best


def _found(task: SetTask, result: SetResult) -> dict[str, Any]:
    """Return the found version as a solution: the sources of the one that it was made from, with the kernel's file
    exchanged."""
    base: Mapping[str, Any] = task.solution
    sources = [
        {**source, "content": result.text} if source.get("path") == task.kernel else source
        for source in base["sources"]
    ]
    return {
        **base,
        "name": f"{base['name']}_accelopt",
        "author": "accelopt-lsp",
        "sources": sources,
        "description": f"Made from {base['name']}: {', '.join(result.steps)}.",
    }


def _trace(task: SetTask, result: SetResult, latency: Latency, solution: str, target: str) -> str | None:
    """Return the line of a trace about the first workload. None where the format has no way to say it."""
    workload = task.workload
    if workload is None or result.status not in ("passed", "wrong"):
        return None
    evaluation: dict[str, Any] = {
        "status": _STATUS.get(result.code, "INCORRECT_NUMERICAL") if result.status == "wrong" else "PASSED",
        "environment": {"hardware": _hardware(latency, target), "libs": {}},
        "timestamp": datetime.now(timezone.utc).isoformat(),
        "log": result.detail,
        "correctness": None,
        "performance": None,
    }
    if evaluation["status"] in ("PASSED", "INCORRECT_NUMERICAL"):
        evaluation["correctness"] = {
            "max_relative_error": _number(result.relative_error),
            "max_absolute_error": _number(result.absolute_error),
            "extra": {
                "relative error": "of the L2 norms, over the gate's cases", "gate": result.code or "accepted",
                "latency": str(latency.known), "reference latency": str(result.eager.known),
            },
        }  # fmt: skip
    if evaluation["status"] == "PASSED":
        if not latency.us or not result.eager.us:
            return None
        evaluation["performance"] = {
            "latency_ms": latency.us / 1000,
            "reference_latency_ms": result.eager.us / 1000,
            "speedup_factor": result.eager.us / latency.us,
        }
    trace = {"definition": task.solution["definition"], "workload": workload, "solution": solution}
    return json.dumps({**trace, "evaluation": evaluation})


def _hardware(latency: Latency, target: str) -> str:
    return target if latency.known is Known.MEASURED else f"{target} ({latency.known})"


def _number(value: float | None) -> float | str:
    """Return an error as the format takes it: numbers that JSON has none for are strings."""
    if value is None or math.isnan(value):
        return "NaN"
    return "Infinity" if math.isinf(value) else value


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".") or "_"


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path
