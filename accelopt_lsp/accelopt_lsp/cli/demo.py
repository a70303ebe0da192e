"""Implements ``accelopt demo``, the tour."""

from __future__ import annotations

from pathlib import Path

import click

from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.resources import examples_folder


@click.command()
@click.option(
    "--examples", type=click.Path(path_type=Path), help="The folder of the example kernels, if not ours."
)
def demo(examples: Path | None) -> None:
    """Show a tour in the terminal, through the language server."""
    import asyncio

    from rich.console import Console

    from accelopt_lsp.demo.story import FILES, tell

    folder = examples if examples is not None else examples_folder()
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        raise wrong_input(f"{folder} has no {missing[0]}; give the project's examples with --examples.")
    asyncio.run(tell(Console(highlight=True), folder))
