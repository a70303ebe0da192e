"""Implements ``accelopt bench memory``: whether what was accepted on one kernel helps on others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_benchmarks.checkout import MEMORY_CORPUS
from accelopt_benchmarks.result import end
from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import out
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_benchmarks.memory.carrying import CarriedEdit
    from accelopt_benchmarks.memory.corpus import CorpusPair


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--corpus", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The pairs: PAIR.txt, the slow side and what differs in the others.",
)  # fmt: skip
@json_option
def memory(
    names: tuple[str, ...],
    corpus: Path | None,
    as_json: bool,
) -> int:
    """Carry the edits of pairs over to other kernels.

    Pairs made by hand, NAMES or all, each through the gate.

    Exit code 1: a goal is missed.
    """
    from accelopt_benchmarks.memory.carrying import rows
    from accelopt_benchmarks.memory.corpus import read_pairs

    try:
        pairs = [p for p in read_pairs(corpus or MEMORY_CORPUS) if not names or p.name in names]
    except ValueError as error:
        raise wrong_input(f"{error}.") from None
    carried = asyncio.run(_carried(pairs))
    if not as_json:
        _print(carried)
    return end(rows(carried), as_json, edits=carried)


async def _carried(pairs: list[CorpusPair]) -> list[CarriedEdit]:
    from accelopt_benchmarks.memory.carrying import carry_all
    from accelopt_profiling.hosts.local import LocalHost

    host, carried = LocalHost(), []
    try:
        async for one in carry_all(pairs, host):
            say(f"{one.pair}, {one.kernel}: {one.verdict}")
            carried.append(one)
    finally:
        await host.close()
    return carried


def _print(carried: list[CarriedEdit]) -> None:
    from rich.table import Table

    table = Table("pair", "kernel", "fit", "gate", "time", "ms", box=None, pad_edge=False)
    for one in carried:
        ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
        fit = f"{one.fit:.2f}{'' if one.whole else ', a part'}"
        table.add_row(one.pair, one.kernel, fit, printable(one.verdict)[:90], ratio, f"{one.ms:.0f}")
    out().print(table)
