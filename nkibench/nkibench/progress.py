"""Shows how far searches had come after so many candidates: the papers' progress over iterations, with and without
parts of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nkibench.peaks import geometric_mean
from nkibench.result import TaskResult

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
