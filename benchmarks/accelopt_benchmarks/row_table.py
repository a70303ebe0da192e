"""Prints results of measurements as a table."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_benchmarks.result import GoalResult
from accelopt_lsp.cli.terminal import out
from accelopt_lsp.stderr import printable


def print_rows(rows: Sequence[GoalResult]) -> None:
    """Print one line for each result: what, goal, value, whether it is met, and how it was measured."""
    from rich.table import Table

    table = Table("what", "goal", "found", "", "how", box=None, pad_edge=False)
    for row in rows:
        met = {True: "met", False: "missed", None: ""}[row.met]
        value = "not measured" if row.value is None else f"{row.value:.3g} {row.unit}"
        table.add_row(printable(row.what), row.goal, value, met, printable(row.detail))
    out().print(table)
