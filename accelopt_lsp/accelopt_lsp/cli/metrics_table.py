"""Prints the papers' metrics on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelopt_lsp.cli.terminal import out
from accelopt_lsp.stderr import printable

if TYPE_CHECKING:
    from nkibench.kernel_sets.flashinfer_output import AgainstSet
    from nkibench.metrics import FastP, Metrics


#: Narrower, columns would be cut.
WIDTH = 120


def print_metrics(rows: Sequence[Metrics]) -> None:
    """Print one line per search and group."""
    from rich.table import Table

    columns = (
        "",
        "tasks",
        "success",
        "fast_1",
        "faster",
        "mean",
        "geometric mean",
        "of peak",
        "candidates",
        "tokens",
        "cost",
    )
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    for row in rows:
        name = f"{row.search}: {row.group}" if row.search else row.group
        table.add_row(
            printable(name), str(row.tasks), _shown(row.success, " %"), _shown(row.fast_1, " %"),
            _shown(row.faster, " %"), _shown(row.mean_speedup, "x"), _shown(row.geometric_mean_speedup, "x"),
            f"{_shown(row.percent_of_peak_before, '')} to {_shown(row.percent_of_peak_after, '')} %",
            _shown(row.candidates_per_task, ""), f"{row.tokens_per_task:.0f}", _shown(row.money_per_task, ""),
        )  # fmt: skip
    console = out()
    console.print(table, width=max(console.width, WIDTH), crop=False)
    certainties = sorted({row.known for row in rows if row.known})
    console.print(
        f"Mean and geometric mean are speedups ({', '.join(certainties) or 'none known'}), percents of peak are "
        "geometric means; candidates, tokens and cost are per task."
    )


def print_fast_p(rows: Sequence[FastP]) -> None:
    """Print KernelBench's shares, one line per search, level and baseline."""
    if not rows:
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("over PyTorch", "tasks", *(f"fast_{p}" for p in rows[0].shares), "timed", "known"):
        table.add_column(column, no_wrap=True)
    for row in rows:
        name = " ".join(
            part for part in (f"{row.search}:" if row.search else "", row.group, row.over) if part
        )
        shares = [_shown(share, " %") for share in row.shares.values()]
        table.add_row(printable(name), str(row.tasks), *shares, str(row.timed), row.known)
    console = out()
    console.print(table, width=max(console.width, WIDTH), crop=False)


def print_against_set(rows: Sequence[AgainstSet]) -> None:
    """Print per definition the set's fastest solution and the best version."""
    if not rows:
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in (
        "definition",
        "solutions",
        "fastest of the set",
        "us",
        "best",
        "us",
        "speedup",
        "known",
        "recorded",
    ):
        table.add_column(column, no_wrap=True)
    for row in rows:
        recorded = "" if row.recorded_ms is None else f"{row.recorded_ms:.4g} ms ({row.recorded})"
        cells = (row.definition, str(row.solutions), row.fastest, _shown(row.fastest_us, ""), row.best,
                 _shown(row.best_us, ""), _shown(row.speedup, "x"), row.known, recorded)  # fmt: skip
        table.add_row(*map(printable, cells))
    console = out()
    console.print(table, width=max(console.width, WIDTH), crop=False)


def _shown(number: float | None, unit: str) -> str:
    return "-" if number is None else f"{number:.3g}{unit}"
