"""Implements ``accelopt replay``: repeats a check or a measurement from its receipt and compares the results."""

from __future__ import annotations

import click

from accelopt_lsp.cli.failures import Exit
from accelopt_lsp.cli.options import host_option, json_option
from accelopt_lsp.cli.surface import call_service
from accelopt_lsp.cli.terminal import out, print_json
from accelopt_lsp.resources import settings_with
from accelopt_lsp.stderr import printable


@click.command()
@click.argument("receipt_id", metavar="RECEIPT")
@host_option
@json_option
def replay(receipt_id: str, host: str | None, as_json: bool) -> int:
    """Run a check or profile again from its RECEIPT. Exit code 1: it does not agree.

    Of a profile, counts and compiler facts must be the same and intervals of times must overlap. Of a check by the
    gate, the same seeds must draw the same inputs, and the verdict, its reasons and each case's outcome must be the
    same.
    """
    settings = settings_with(receipt_id, {"host": host})
    replayed = call_service(lambda service: service.replay(receipt_id, settings))
    if as_json:
        print_json(replayed)
    else:
        console = out()
        console.print("agrees" if replayed.agrees else "does not agree")
        for difference in replayed.differences:
            console.print(
                printable(f"  {difference.name}: {difference.then} in the receipt, {difference.now} now")
            )
    return Exit.DONE if replayed.agrees else Exit.NO
