"""What one kernel costs on each target, as a page."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_lsp.features.wording import duration_interval, escaped, percent, stop_reason
from accelopt_profiling.measurement import KernelMeasurement


def target_table(results: Sequence[KernelMeasurement]) -> str:
    """Return a Markdown table with a row for each target, fastest first; those without a time say why."""
    ordered = sorted(results, key=lambda r: (r.latency.us is None, r.latency.us or 0.0, r.target))
    rows = ["| target | time | bound | of peak |", "|---|---|---|---:|"]
    return "\n".join([*rows, *map(_row, ordered)])


def _row(result: KernelMeasurement) -> str:
    if result.latency.us is None:
        return f"| {escaped(result.target)} | {escaped(stop_reason(result) or 'not known')} | | |"
    share = f"{percent(result.percent_of_peak)} %" if result.percent_of_peak is not None else ""
    cells = (result.target, duration_interval(result.latency), result.bound or "", share)
    return f"| {' | '.join(map(escaped, cells))} |"
