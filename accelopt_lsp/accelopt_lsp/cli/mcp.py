"""Implements ``accelopt mcp``: offers tools to coding agents over the Model Context Protocol."""

from __future__ import annotations

import os
from pathlib import Path

import click

from accelopt_lsp.cli.failures import CommandError, Exit


@click.command()
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The folder whose kernel files the tools read and change. [default: the working folder]",
)
def mcp(root: Path) -> None:
    """Serve a coding agent over standard streams (MCP).

    Its tools are profile, optimize, verify, accept, reject and memory_search.

    In the agent's configuration: command "accelopt", arguments ["mcp", "--root", "/path/to/project"].
    """
    try:
        from accelopt_lsp.coding_agents import server
    except ImportError:
        why = "The package mcp is missing; install accelopt-lsp[mcp] for the tools of coding agents."
        raise CommandError(Exit.UNAVAILABLE, why) from None
    os.chdir(root)  # ids are looked for in its memory
    server(Path.cwd()).run(transport="stdio")
