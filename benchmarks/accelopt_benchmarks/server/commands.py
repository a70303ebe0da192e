"""Implements ``accelopt bench self``: first numbers, answers, start, and kernel files of others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelopt_benchmarks.checkout import check_examples, examples_option
from accelopt_benchmarks.result import end
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.stderr import say

if TYPE_CHECKING:
    from accelopt_benchmarks.result import GoalResult

#: The seeds of the memory's part of ``bench self``.
PROOF_SEEDS = 10


@click.command(name="self")
@examples_option
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    help="A checkout with published measurements (Liger-Kernel, AccelOpt); can be given again.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="TEXT",
    help="Only measurements whose name holds TEXT: first numbers, answers, start, memory, ...",
)
@json_option
def self_(examples: Path, data: tuple[Path, ...], only: tuple[str, ...], as_json: bool) -> int:
    """Measure what AccelOpt promises, on this machine. Exit code 1: a goal is missed."""
    check_examples(examples)
    return end(asyncio.run(_measure_self(examples, data, only)), as_json)


async def _measure_self(examples: Path, data: Sequence[Path], only: Sequence[str]) -> list[GoalResult]:
    from accelopt_benchmarks.foreign import files, triton_bench
    from accelopt_benchmarks.memory import evaluation_run
    from accelopt_benchmarks.nki import time_model
    from accelopt_benchmarks.server import (
        endurance,
        house,
        large_file,
        malformed,
        responsiveness,
        startup,
        walks,
    )

    measures: dict[str, Callable[[], Awaitable[list[GoalResult]]]] = {
        "first numbers": partial(responsiveness.first_numbers, examples),
        "answers": partial(responsiveness.answers, examples),
        "start": partial(startup.startup, examples),
        "a large file": partial(large_file.large_file, data),
        "idle memory": partial(endurance.idle, examples),
        "eight hours": partial(endurance.eight_hours, examples),
        "malformed messages": partial(malformed.malformed, examples),
        "walks": partial(walks.walks, examples),
        "house": house.house,
        "files of others": partial(files.files_of_others, examples),
        "files of TritonBench": partial(triton_bench.triton_bench, data),
        "memory": partial(evaluation_run.measure_evaluation, (), PROOF_SEEDS),
        "published times of Liger-Kernel": partial(files.liger_times, data),
        "published times of NKI kernels": partial(time_model.time_model, data),
    }
    rows: list[GoalResult] = []
    for name, measure in measures.items():
        if only and not any(text in name for text in only):
            continue
        say(f"measuring {name} ...")
        rows += await measure()
    return rows
