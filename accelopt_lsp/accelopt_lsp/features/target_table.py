"""What one kernel costs on each target, as a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from accelopt_lsp.features.wording import duration_interval, escaped, percent, stop_reason
from accelopt_profiling.measurement import KernelMeasurement


def target_table(results: Sequence[KernelMeasurement]) -> str:
    """Return a Markdown table with a row for each target, fastest first; those without a time say why."""
    rows = ["| target | time | bound | of peak |", "|---|---|---|---:|"]
    return "\n".join([*rows, *map(_row, by_time(results))])


def by_time(results: Iterable[KernelMeasurement]) -> list[KernelMeasurement]:
    """Return the results fastest first, those without a time at the end."""
    return sorted(results, key=lambda r: (r.latency.us is None, r.latency.us or 0.0, r.target))


def time_on(result: KernelMeasurement) -> str:
    """Return the time as an interval, or why there is none."""
    if result.latency.us is None:
        return stop_reason(result) or "not known"
    return duration_interval(result.latency)


def _row(result: KernelMeasurement) -> str:
    share = f"{percent(result.percent_of_peak)} %" if result.percent_of_peak is not None else ""
    bound = result.bound or "" if result.latency.us is not None else ""
    cells = (result.target, time_on(result), bound, share)
    return f"| {' | '.join(map(escaped, cells))} |"
