"""Writes the results of a run: ``results.json``, ``results.md``, ``chart.html``, the best kernels, AccelOpt's CSV."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelopt_profiling.plain import to_plain
from nkibench.case import BenchmarkCase, BenchmarkCases
from nkibench.chart import headline, page
from nkibench.metrics import milliseconds, of_peak
from nkibench.peaks import geometric_mean, published_geomean
from nkibench.result import TaskResult, summarise

COLUMNS = ("problem", "values", "case_id", "task", "kernel", "case_name", "service_name", "profile")


@dataclass(frozen=True)
class ProfileRow:
    """One kernel's row; ``profile`` is the metadata of ``NKIKernel``."""

    problem: str
    values: dict[str, int]
    case_id: str
    task: str
    kernel: str
    case_name: str
    service_name: str
    profile: dict[str, Any] = field(default_factory=dict)


def row_of(subject: BenchmarkCase, profile: dict[str, Any]) -> ProfileRow:
    return ProfileRow(
        subject.name, subject.values, case_id=subject.case_id, task=str(subject.reference), kernel=str(subject.kernel),
        case_name=subject.case_name, service_name=subject.service_name, profile=profile,
    )  # fmt: skip


def write_profiles(path: Path, rows: Sequence[ProfileRow]) -> None:
    """Write the profiles. Raises OSError when it cannot be written."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {**vars(row), "values": json.dumps(row.values), "profile": json.dumps(row.profile)}
            )


def write_report(folder: Path, cases: BenchmarkCases, results: Sequence[TaskResult], target: str) -> None:
    """Write every file anew, each in one step.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder / "results.json", json.dumps(report_object(results, target), indent=2) + "\n")
    _replace(folder / "results.md", table(results, target))
    _replace(folder / "chart.html", page(results, target))
    for result in results:
        if result.best is not None and result.best.text:
            _replace(folder / f"{result.case}_best.py", result.best.text)
    by_case = {r.case: r for r in results}
    rows = [row_of(s, _profile(by_case[s.case_name])) for s in cases.ready if s.case_name in by_case]
    write_profiles(folder / "profile_results.csv", rows)


def report_object(results: Sequence[TaskResult], target: str) -> dict[str, Any]:
    """Return the results as plain data, with percents and geometric means."""
    summary = summarise(results)
    listed = []
    for result in results:
        data: dict[str, Any] = to_plain(result)
        del data["key"], data["gate"]
        data.update(percent_of_peak=result.percent, best_percent_of_peak=result.best_percent)
        data["best_percent_of_float32_peak"] = result.best_percent_in_float32
        if data["best"] is not None:
            data["best"].pop("text")
        listed.append(data)
    return {
        "target": target,
        "geomean_percent_of_peak": {
            "baseline": summary.baseline,
            "best": summary.best,
            "gain": None
            if summary.best is None or summary.baseline is None
            else summary.best - summary.baseline,
            "tasks": summary.counted,
            "of": summary.of,
            "known": summary.known,
        },
        "published_geomean": published_geomean(target),
        "tasks": listed,
    }


def table(results: Sequence[TaskResult], target: str) -> str:
    """Return the results as a Markdown table. What a search came to only where there was one."""
    searched = any(r.best is not None for r in results)
    names = ["task", "result", "error", "ms", "of peak", "bound", *(_SEARCHED if searched else ())]
    lines = [f"# NKIBench on {target}", "", headline(summarise(results)), ""]
    lines += [_row(names), _row(["---"] * len(names))]
    for r in results:
        status = r.status if r.status == "passed" else f"{r.status}: {r.detail}"
        error = "" if r.error is None else f"{r.error:.1e}"
        cells = [r.task, status, error, milliseconds(r.latency.us), of_peak(r.percent), r.bound or ""]
        lines.append(_row([*cells, *(_found(r) if searched else ())]))
    return "\n".join(lines) + "\n"


_SEARCHED = ("best ms", "of peak", "candidates", "gate accepted", "steps")


def _found(result: TaskResult) -> tuple[str, ...]:
    best = result.best
    if best is None:
        return ("",) * len(_SEARCHED)
    steps = ", ".join(step.removeprefix("rule:") for step in best.steps)
    judged = f"{best.accepted} of {best.judged}"
    return milliseconds(best.latency.us), of_peak(result.best_percent), str(best.tried), judged, steps


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _profile(result: TaskResult) -> dict[str, Any]:
    """AccelOpt's profile fields of a result."""
    latency = result.latency
    if result.status != "passed" or latency.us is None:
        return {"correctness_error" if result.status == "wrong" else "compilation_error": result.detail}
    low, high = latency.low_us or latency.us, latency.high_us or latency.us
    return {
        "latency": latency.us / 1000, "min_ms": low / 1000, "max_ms": high / 1000,
        "rel_diffs": (high - low) / low, "known": str(latency.known),
    }  # fmt: skip


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


#: After so many candidates progress is told.
CHECKPOINTS = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2184)


def progress(results: Sequence[TaskResult]) -> dict[int, float]:
    """Return the geometric mean of the speedups over the baselines after each number of candidates, up to the longest
    search. Of versions that were faster than the checked best one, which the gate did not accept, none counts."""
    searched = [r for r in results if r.best is not None and r.latency.us]
    if not searched:
        return {}
    most = max(r.best.tried for r in searched if r.best is not None)
    counts = sorted({*(n for n in CHECKPOINTS if n < most), most} - {0})
    means = {}
    for count in counts:
        speedups = [_speedup_after(r, count) for r in searched]
        means[count] = geometric_mean(speedups) or 1.0
    return means


def _speedup_after(result: TaskResult, count: int) -> float:
    best = result.best
    assert best is not None
    assert result.latency.us is not None
    checked = best.latency.us or result.latency.us
    reached = [us for number, us in best.progress if number <= count and us >= checked * (1 - 1e-6)]
    return result.latency.us / min([result.latency.us, *reached])


def progress_table(searches: Mapping[str, Sequence[TaskResult]]) -> str:
    """Return the progress of several searches as Markdown, a column each; "" where nothing was searched."""
    columns = {name: progress(results) for name, results in searches.items()}
    columns = {name: column for name, column in columns.items() if column}
    if not columns:
        return ""
    counts = sorted({count for column in columns.values() for count in column})
    lines = [
        "# Progress", "",
        "Geometric mean of the speedups over the baselines after so many candidates. A version counts only if the gate "
        "accepted it, or it is slower than one that it accepted.", "",
        "| candidates | " + " | ".join(name or "the search" for name in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]  # fmt: skip
    for count in counts:
        cells = []
        for column in columns.values():
            reached = [value for number, value in column.items() if number <= count]
            cells.append(f"{max(reached):.3f}x" if reached and count <= max(column) else "")
        lines.append(f"| {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
