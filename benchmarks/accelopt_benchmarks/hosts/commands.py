"""Implements ``accelopt bench hosts``: what a host adds to a candidate, and killed workers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_benchmarks.checkout import check_examples, examples_option
from accelopt_benchmarks.result import end
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.stderr import say

if TYPE_CHECKING:
    from accelopt_benchmarks.result import GoalResult


HOST_PARTS = ("overhead", "killed", "gate")


@click.command()
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(HOST_PARTS),
    help="Only this part; can be given again.",
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
@examples_option
@json_option
def hosts(parts: tuple[str, ...], rounds: int, candidates: int, examples: Path, as_json: bool) -> int:
    """Measure hosts, killed workers and the time of the gate.

    What hosts add to a candidate, whether candidates survive, and how long the gate takes.

    Takes three minutes on a quiet machine, most of it the killed workers. Exit code 1: a goal is missed.
    """
    chosen = parts or HOST_PARTS
    if "gate" in chosen:
        check_examples(examples)
    return end(asyncio.run(_measure_hosts(chosen, rounds, candidates, examples)), as_json)


async def _measure_hosts(
    parts: tuple[str, ...], rounds: int, candidates: int, examples: Path
) -> list[GoalResult]:
    from accelopt_benchmarks.gate.check_time import gate_time
    from accelopt_benchmarks.hosts.overhead import killed_workers, overhead

    rows: list[GoalResult] = []
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
