"""``accelopt bench hosts``: what hosts add to a candidate, and killed workers."""

from __future__ import annotations

import asyncio

import click

from accelopt_lsp.cli.failures import Exit
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import out, print_json, printable, say


@click.command()
@click.option(
    "--rounds", type=click.IntRange(5, 1000), default=30, help="Candidates per way of running them."
)
@click.option(
    "--candidates", type=click.IntRange(2, 10000), default=200, help="Candidates while workers are killed."
)
@json_option
def hosts(rounds: int, candidates: int, as_json: bool) -> int:
    """What hosts add to a candidate, and whether candidates survive killed workers. Takes two minutes."""
    from accelopt_lsp.bench.hosts import killed_workers, overhead

    say("measuring the overhead per candidate ...")
    rows = asyncio.run(overhead(rounds))
    say("killing workers ...")
    rows += asyncio.run(killed_workers(candidates))
    if as_json:
        print_json({"met": all(row.met for row in rows), "rows": rows})
    else:
        from rich.table import Table

        table = Table("what", "goal", "found", "", "how", box=None, pad_edge=False)
        for row in rows:
            met = "met" if row.met else "missed"
            table.add_row(row.what, row.goal, f"{row.value:.3g} {row.unit}", met, printable(row.detail))
        out().print(table)
    return Exit.DONE if all(row.met for row in rows) else Exit.NO
