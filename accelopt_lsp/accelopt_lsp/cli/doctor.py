"""``accelopt doctor``: what is there, what is missing and how to fix it."""

from __future__ import annotations

from pathlib import Path

import click

from accelopt_lsp.cli.failures import Exit
from accelopt_lsp.cli.options import json_option
from accelopt_lsp.cli.terminal import out, print_json, printable

_MARKS = {"ok": "ok", "absent": "--", "broken": "!!"}


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Look at everything AccelOpt uses. Exit code 1: something that is needed does not work."""
    from accelopt_lsp.cli.checks import all_checks

    checks = all_checks(Path.cwd())
    healthy = all(check.state != "broken" for check in checks)
    if as_json:
        print_json({"ok": healthy, "checks": checks})
    else:
        from rich.table import Table

        table = Table("", "what", "found", box=None, pad_edge=False)
        for check in checks:
            fix = f"\n{check.fix}" if check.fix else ""
            table.add_row(_MARKS[check.state], check.name, printable(check.found + fix))
        out().print(table)
    return Exit.DONE if healthy else Exit.NO
