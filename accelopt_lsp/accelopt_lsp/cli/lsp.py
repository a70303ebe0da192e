"""Implements ``accelopt lsp``, which starts the language server."""

from __future__ import annotations

import click

from accelopt_lsp.cli.failures import wrong_input


@click.command()
@click.option("--stdio", is_flag=True, help="Talk over standard streams (the default; editors pass it).")
@click.option("--tcp", metavar="HOST:PORT", help="Listen on an address instead.")
@click.option(
    "--log-level",
    default="warning",
    show_default=True,
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What is logged to standard error.",
)
def lsp(stdio: bool, tcp: str | None, log_level: str) -> None:
    """Start the language server. `accelopt-lsp` is the same."""
    import logging
    import sys

    if stdio and tcp:
        raise wrong_input("Choose --stdio or --tcp, not both.")
    logging.basicConfig(
        stream=sys.stderr, level=log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    from accelopt_lsp.server.main import start

    if tcp is None:
        start()
        return
    host, _, port = tcp.rpartition(":")
    if not port.isdigit() or not 0 <= int(port) < 65536:
        raise wrong_input(f"--tcp: {tcp!r} is no address; write 127.0.0.1:8765.")
    start(tcp=(host or "127.0.0.1", int(port)))
