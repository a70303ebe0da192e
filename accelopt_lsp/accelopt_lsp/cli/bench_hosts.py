"""``accelopt bench hosts``: what hosts add to a candidate, killed workers, and the gate's time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import EXAMPLES, json_option
from accelopt_lsp.cli.terminal import out, print_json
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_lsp.bench.row import Row

PARTS = ("overhead", "killed", "gate")


@click.command()
@click.option(
    "--part", "parts", multiple=True, type=click.Choice(PARTS), help="Only this part; can be given again."
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=30,
    help="Candidates per way of running them, and checks.",
)
@click.option(
    "--candidates", type=click.IntRange(2, 10000), default=200, help="Candidates while workers are killed."
)
@click.option(
    "--examples", type=click.Path(path_type=Path), default=EXAMPLES, help="The folder of the example kernels."
)
@json_option
def hosts(parts: tuple[str, ...], rounds: int, candidates: int, examples: Path, as_json: bool) -> int:
    """What hosts add to a candidate, whether candidates survive killed workers, and how long the gate takes.

    Takes three minutes on a quiet machine, most of it the killed workers. Exit code 1: a goal is missed.
    """
    asked = parts or PARTS
    if "gate" in asked and not (examples / "nki_silu.py").exists():
        raise wrong_input(f"{examples} has no nki_silu.py; give the project's examples with --examples.")
    rows = asyncio.run(_measure(asked, rounds, candidates, examples))
    met = all(row.met for row in rows)
    if as_json:
        print_json({"met": met, "rows": rows})
    else:
        from rich.table import Table

        table = Table("what", "goal", "found", "", "how", box=None, pad_edge=False)
        for row in rows:
            found = "not measured" if row.value is None else f"{row.value:.3g} {row.unit}"
            table.add_row(row.what, row.goal, found, "met" if row.met else "missed", printable(row.detail))
        out().print(table)
    return Exit.DONE if met else Exit.NO


async def _measure(parts: tuple[str, ...], rounds: int, candidates: int, examples: Path) -> list[Row]:
    from accelopt_lsp.bench.gate_time import gate_time
    from accelopt_lsp.bench.hosts import killed_workers, overhead

    rows: list[Row] = []
    if "overhead" in parts:
        say("measuring the overhead per candidate ...")
        rows += await overhead(rounds)
    if "killed" in parts:
        say("killing workers ...")
        rows += await killed_workers(candidates)
    if "gate" in parts:
        say("checking kernels ...")
        rows += await gate_time(examples, min(rounds, 10))
    return rows
