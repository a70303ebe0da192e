"""Implements ``accelopt demo``, the tour."""

from __future__ import annotations

from pathlib import Path

import click

import accelopt_lsp
from accelopt_lsp.cli.failures import wrong_input


def examples_folder() -> Path:
    """Return the example kernels: inside the installed package, or at the root of the checkout that it is
    in."""
    package = Path(accelopt_lsp.__file__).parent
    packed = package / "examples"
    return packed if packed.is_dir() else package.parents[1] / "examples"


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
