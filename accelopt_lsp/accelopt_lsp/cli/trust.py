"""Implements ``accelopt trust``: approves what a project's folder makes AccelOpt run, and where it sends code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from accelopt_lsp.cli.failures import CommandError, Exit, wrong_input
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.stderr import printable, say


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
@click.option("--yes", is_flag=True, help="Approve without a question.")
@click.option("--show", is_flag=True, help="Only show what is approved and what is not.")
@click.option("--withdraw", is_flag=True, help="Take back what was approved for the folder.")
@json_option
def trust(folder: Path, yes: bool, show: bool, withdraw: bool, as_json: bool) -> int:
    """Trust a project's Python environment and sensitive settings.

    Its environment (.venv) may be run then, and its settings may name programs, hosts and models. Once per folder, and
    again when those settings change. Exit code 1: it is not trusted.
    """
    from accelopt_lsp.settings.approvals import Approvals
    from accelopt_lsp.settings.load import load_settings

    approvals, settings = Approvals.of_user(os.environ), load_settings(folder)
    root = (settings.project_root or folder).resolve()
    waiting = settings.unapproved
    trusted = approvals.trusts(root)
    try:
        if withdraw:
            was_approved = approvals.withdraw(root)
            say(f"Withdrawn for {root}." if was_approved else f"Nothing was approved for {root}.")
            return Exit.DONE if was_approved else Exit.NO
        if not show and not (trusted and waiting is None):
            say(f"{root}: its Python environment is run with your permissions where a kernel needs it.")
            for name, value in sorted((waiting.values if waiting is not None else {}).items()):
                say(printable(f"  {name} = {value!r}"))
            if not yes and not _agreed():
                return Exit.NO
            approvals.give(root, trust=True)
            if waiting is not None:
                approvals.give(waiting.folder, waiting.values)
            trusted, waiting = True, None
    except OSError as error:
        raise CommandError(
            Exit.UNAVAILABLE, f"{approvals.path} cannot be written: {error.strerror}."
        ) from None
    unapproved = waiting.values if waiting is not None else {}
    if as_json:
        print_json({"folder": str(root), "trusted": trusted, "unapproved": unapproved})
    else:
        click.echo(f"{root}: {'trusted' if trusted else 'not trusted'}.")
        for name, value in sorted(unapproved.items()):
            click.echo(printable(f"not approved: {name} = {value!r}"))
    return Exit.DONE if trusted and not unapproved else Exit.NO


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise wrong_input("Nobody can be asked here; `--yes` approves without a question.")
    return click.confirm("Trust it?", err=True)
