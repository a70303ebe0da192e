"""``accelopt bench``: the project's own measurements."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_lsp.cli.bench_device import device
from accelopt_lsp.cli.bench_flashinfer import flashinfer
from accelopt_lsp.cli.bench_gate import gate
from accelopt_lsp.cli.bench_hosts import hosts
from accelopt_lsp.cli.bench_kernelbench import kernelbench
from accelopt_lsp.cli.bench_nkibench import nkibench
from accelopt_lsp.cli.bench_search import search
from accelopt_lsp.cli.failures import Exit, wrong_input
from accelopt_lsp.cli.options import EXAMPLES, json_option
from accelopt_lsp.cli.terminal import out, print_json
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_lsp.bench.row import Row


@click.group()
def bench() -> None:
    """Benchmarks, and what AccelOpt says of itself."""


bench.add_command(device)
bench.add_command(flashinfer)
bench.add_command(gate)
bench.add_command(hosts)
bench.add_command(kernelbench)
bench.add_command(nkibench)
bench.add_command(search)


@bench.command(name="self")
@click.option(
    "--examples", type=click.Path(path_type=Path), default=EXAMPLES, help="The folder of the example kernels."
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    help="A checkout with published measurements (Liger-Kernel, AccelOpt); can be given again.",
)
@json_option
def self_(examples: Path, data: tuple[Path, ...], as_json: bool) -> int:
    """Measure what AccelOpt promises, on this machine. Exit code 1: a goal is missed."""
    if not (examples / "nki_silu.py").exists():
        raise wrong_input(f"{examples} has no nki_silu.py; give the project's examples with --examples.")
    rows = asyncio.run(_measure(examples, data))
    missed = any(row.met is False for row in rows)
    if as_json:
        print_json({"met": not missed, "rows": rows})
    else:
        _print(rows)
    return Exit.NO if missed else Exit.DONE


async def _measure(examples: Path, data: Sequence[Path]) -> list[Row]:
    from accelopt_lsp.bench import nki_time, others, responsiveness, triton_bench

    measures: dict[str, Callable[[], Awaitable[list[Row]]]] = {
        "first numbers": partial(responsiveness.first_numbers, examples),
        "answers": partial(responsiveness.answers, examples),
        "files of others": partial(others.files_of_others, examples),
        "files of TritonBench": partial(triton_bench.triton_bench, data),
        "published times of Liger-Kernel": partial(others.liger_times, data),
        "published times of NKI kernels": partial(nki_time.time_model, data),
    }
    rows: list[Row] = []
    for name, measure in measures.items():
        say(f"measuring {name} ...")
        rows += await measure()
    return rows


def _print(rows: list[Row]) -> None:
    from rich.table import Table

    table = Table("what", "goal", "found", "", "how", box=None, pad_edge=False)
    for row in rows:
        met = {True: "met", False: "missed", None: ""}[row.met]
        value = "not measured" if row.value is None else f"{row.value:.3g} {row.unit}"
        table.add_row(printable(row.what), row.goal, value, met, printable(row.detail))
    out().print(table)
