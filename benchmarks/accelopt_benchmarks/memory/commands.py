"""Implements ``accelopt bench memory``: whether what was accepted on one kernel helps on others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_benchmarks.checkout import EXAMPLES, MEMORY_CORPUS
from accelopt_benchmarks.result import end
from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import out
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from accelopt_benchmarks.memory.carrying import CarriedEdit
    from accelopt_benchmarks.memory.corpus import CorpusPair
    from accelopt_benchmarks.result import GoalResult

#: The versions of each kernel whose costs ``--orders`` finds out.
ORDER_TEXTS = 24


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--corpus", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The pairs: PAIR.txt, the slow side and what differs in the others.",
)  # fmt: skip
@click.option(
    "--orders", type=click.IntRange(1, 1000), metavar="SEEDS",
    help="Also compare the order that outcomes elsewhere let expect with the catalogue's and a random one.",
)  # fmt: skip
@click.option(
    "--cache", type=click.Path(path_type=Path, file_okay=False), help="Keep the costs for --orders here."
)
@click.option(
    "--rules", is_flag=True, help="Also carry the edits of rules between NKIBench's tasks and the examples."
)
@click.option(
    "--size", "sizes", multiple=True, type=click.IntRange(1000, 2_000_000), metavar="PAIRS",
    help="Only time the look-up among so many pairs beside a scan of vectors, and inserts. May be repeated.",
)  # fmt: skip
@click.option(
    "--beside", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="PYTHON",
    help="With --size: an interpreter that has chromadb and lancedb, timed with as many vectors.",
)  # fmt: skip
@json_option
def memory(
    names: tuple[str, ...],
    corpus: Path | None,
    orders: int | None,
    cache: Path | None,
    rules: bool,
    sizes: tuple[int, ...],
    beside: Path | None,
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
    if sizes:
        return end(_measure_sizes(pairs, sizes, beside), as_json)
    carried = asyncio.run(_carried(pairs))
    table = [*rows(carried), *(_rule_rows() if rules else ())]
    if orders is not None:
        table += asyncio.run(_order_rows(orders, cache))
    if not as_json:
        _print(carried)
    return end(table, as_json, edits=carried)


def _measure_sizes(pairs: list[CorpusPair], sizes: tuple[int, ...], beside: Path | None) -> list[GoalResult]:
    import tempfile

    from accelopt_benchmarks.memory.size import kernels_below, size_rows

    with tempfile.TemporaryDirectory(prefix="accelopt-memory-") as folder:
        kernels = kernels_below([EXAMPLES, MEMORY_CORPUS.parent])
        return size_rows(kernels, [p.as_pair() for p in pairs], sizes, Path(folder), say, beside)


def _rule_rows() -> list[GoalResult]:
    import tempfile

    from accelopt_benchmarks.memory.rule_edits import carry_rule_edits, row
    from accelopt_benchmarks.search.kernels import study_kernels

    with tempfile.TemporaryDirectory(prefix="accelopt-memory-") as folder:
        return [row(carry_rule_edits(study_kernels(Path(folder), EXAMPLES, ())))]


async def _order_rows(seeds: int, cache: Path | None) -> list[GoalResult]:
    """Compare orders of trying rules on NKIBench's tasks; the costs are found out once."""
    import tempfile
    from contextlib import AsyncExitStack

    from accelopt_benchmarks.memory.order import compare_orders, order_rows
    from accelopt_benchmarks.search.kernels import study_kernels
    from accelopt_benchmarks.search.landscape import explored
    from accelopt_benchmarks.search.study import StudyPlan, open_world

    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="accelopt-memory-"))
        plan = StudyPlan(cache or Path(folder) / "cache", texts=ORDER_TEXTS)
        worlds, known = {}, {}
        for kernel in study_kernels(Path(folder), EXAMPLES, ()):
            worlds[kernel.name] = await stack.enter_async_context(open_world(kernel, plan))
            known[kernel.name] = await explored(worlds[kernel.name], plan.texts)
            say(f"{kernel.name}: the costs of {len(known[kernel.name].texts)} versions are known")
        return order_rows(await compare_orders(worlds, known, seeds))


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
