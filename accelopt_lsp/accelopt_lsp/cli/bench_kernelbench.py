"""``accelopt bench kernelbench``: kernels for KernelBench's tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from accelopt_lsp.cli.running_sets import run_tasks, set_options


@click.command(name="kernelbench")
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True, metavar="DIR",
    help="A checkout of KernelBench, with its levels.",
)  # fmt: skip
@click.option(
    "--kernels", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True, metavar="DIR",
    help="The kernels (ModelNew): level1/19_ReLU.py, or a folder of one of KernelBench's runs.",
)  # fmt: skip
@set_options("kernelbench-results")
def kernelbench(data: Path, kernels: Path, **asked: Any) -> int:
    """Check, profile and optimize kernels for KernelBench's tasks; print success, fast_1 and speedups per level.

    Exit code 1: a kernel is wrong, absent or could not be run. 2: the checkout cannot be used.
    """
    from accelopt_lsp.bench import kernel_sets

    return run_tasks(lambda: list(kernel_sets.kernelbench(data, kernels)), **asked)
