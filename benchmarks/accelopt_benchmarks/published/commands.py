"""Implements ``accelopt bench estimates``: estimates beside published figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from accelopt_benchmarks.result import end
from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import out
from accelopt_lsp.stderr import say

if TYPE_CHECKING:
    from accelopt_benchmarks.published.comparison import PublishedRow


@click.command()
@click.option("--only", default="", metavar="TEXT", help="Only publications whose name holds TEXT.")
@json_option
def estimates(only: str, as_json: bool) -> int:
    """Compare estimates of Triton kernels with published times. Exit code 1: a goal is missed.

    Takes some minutes: the kernels have their full size, and two programs of each run.
    """
    from accelopt_benchmarks.published.comparison import compare, summary

    figures = []
    for row in compare(only):
        say(f"{row.group}: {row.shape}: {row.measured_us:.4g} us, estimated {row.estimate_us:.4g}")
        figures.append(row)
    if not figures:
        raise wrong_input(f"No publication's name holds {only!r}.")
    rows = summary(figures)
    if not as_json:
        _print_published(figures)
    return end(rows, as_json, figures=figures)


def _print_published(figures: Sequence[PublishedRow]) -> None:
    from rich.table import Table

    columns = ("published", "shape", "tile", "us", "estimate (us)", "interval", "ratio", "bound")
    table = Table(*columns, box=None, pad_edge=False)
    for row in figures:
        interval = f"{row.low_us:.4g}-{row.high_us:.4g}" + ("" if row.inside else " MISSED")
        table.add_row(
            row.group, row.shape, row.tile, f"{row.measured_us:.4g}", f"{row.estimate_us:.4g}", interval,
            f"{row.ratio:.2f}", row.bound,
        )  # fmt: skip
    out().print(table)
    out().print()
