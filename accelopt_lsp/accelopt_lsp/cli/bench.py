"""``accelopt bench``: the project's own measurements."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.bench_nkibench import nkibench
from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import out, print_json, printable, say

if TYPE_CHECKING:
    from accelopt_lsp.bench.row import Row

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@click.group()
def bench() -> None:
    """Benchmarks, and what AccelOpt says of itself."""


bench.add_command(nkibench)


@bench.command(name="self")
@click.option(
    "--examples", type=click.Path(path_type=Path), default=EXAMPLES, help="The folder of the example kernels."
)
@json_option
def self_(examples: Path, as_json: bool) -> int:
    """Measure what AccelOpt promises, through the real server. Exit code 1: a goal is missed."""
    if not (examples / "nki_silu.py").exists():
        raise wrong_input(f"{examples} has no nki_silu.py; give the project's examples with --examples.")
    rows = asyncio.run(_measure(examples))
    if as_json:
        print_json({"met": all(row.met for row in rows), "rows": rows})
    else:
        _print(rows)
    return Exit.DONE if all(row.met for row in rows) else Exit.NO


async def _measure(examples: Path) -> list[Row]:
    from accelopt_lsp.bench import responsiveness

    rows: list[Row] = []
    for measure in (responsiveness.first_numbers, responsiveness.answers):
        say(f"measuring {measure.__name__.replace('_', ' ')} ...")
        rows += await measure(examples)
    return rows


def _print(rows: list[Row]) -> None:
    from rich.table import Table

    table = Table("what", "goal", "found", "", "how", box=None, pad_edge=False)
    for row in rows:
        met = "met" if row.met else "missed"
        table.add_row(
            printable(row.what), row.goal, f"{row.value:.3g} {row.unit}", met, printable(row.detail)
        )
    out().print(table)
