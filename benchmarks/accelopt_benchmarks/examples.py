"""Defines the option of the commands that measure on the example kernels."""

from __future__ import annotations

from pathlib import Path

import click

from accelopt_benchmarks.checkout import EXAMPLES
from accelopt_lsp.cli.failures import wrong_input

examples_option = click.option(
    "--examples", type=click.Path(path_type=Path), default=EXAMPLES, help="The folder of the example kernels."
)


def check_examples(folder: Path) -> None:
    """Raise a usage error where ``folder`` holds no examples."""
    if not (folder / "nki_silu.py").exists():
        raise wrong_input(f"{folder} has no nki_silu.py; give the project's examples with --examples.")
