"""``accelopt bench flashinfer``: the Triton solutions of a FlashInfer-Bench data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from accelopt_lsp.cli.running_sets import run_tasks, set_options


@click.command(name="flashinfer")
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True, metavar="DIR",
    help="A data set of FlashInfer-Bench, with definitions, workloads and solutions.",
)  # fmt: skip
@click.option(
    "--workloads", type=click.IntRange(1), default=3, show_default=True,
    help="Check on so many workloads of a definition; the first one's time counts.",
)  # fmt: skip
@set_options("flashinfer-results")
def flashinfer(data: Path, workloads: int, **asked: Any) -> int:
    """Check, profile and optimize the Triton solutions of a data set; print success, fast_1 and speedups per kind.

    Exit code 1: a kernel is wrong or could not be run. 2: the data set cannot be used.
    """
    from accelopt_lsp.bench import kernel_sets

    return run_tasks(lambda: list(kernel_sets.flashinfer(data, workloads)), **asked)
