"""``accelopt demo``: the tour."""

from __future__ import annotations

from pathlib import Path

import click

from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.cli.options import EXAMPLES


@click.command()
@click.option(
    "--examples", type=click.Path(path_type=Path), default=EXAMPLES, help="The folder of the example kernels."
)
def demo(examples: Path) -> None:
    """Show the whole story in the terminal, through the real language server."""
    import asyncio

    from rich.console import Console

    from accelopt_lsp.demo.story import FIRST, tell

    if not (examples / FIRST).exists():
        raise wrong_input(f"{examples} has no {FIRST}; give the project's examples with --examples.")
    asyncio.run(tell(Console(highlight=True), examples))
